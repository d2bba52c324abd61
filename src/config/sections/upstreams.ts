import { z } from "zod";
import type {
  ConnectionSettings,
  DrainSettings,
  EndUserForwarding,
  Timeouts,
} from "../../domain/upstream-settings.ts";
import { duration, identifier, text, wholeNumber } from "../../settings/values.ts";
import { buildConnections, connectionsSchema, upstreamTls } from "./upstream-connections.ts";
import { kindNamed, type FileTarget, type UpstreamKind } from "../../upstreams/kind.ts";

/** Timeouts of a kind: first byte and idle differ by kind. */
function timeoutsSchema({ firstByte, idle }: UpstreamKind["answerTimes"]) {
  return z
    .strictObject({
      connect: duration("3s", ["10ms", "1h"]).describe(
        "Until a connection is open, proxy and TLS included.",
      ),
      first_byte: duration(firstByte, ["10ms", "1h"]).describe(
        "From the request to the first byte of a streamed answer; other answers have no such " +
          "limit.",
      ),
      idle: duration(idle, ["10ms", "1h"]).describe(
        "Maximum time without a byte within an answer.",
      ),
      total: duration("10m", ["10ms", "24h"]).describe(
        "From the request to the end of the answer.",
      ),
    })
    .prefault({})
    .describe("How long one attempt may take.");
}

const mostInFlight = wholeNumber(4096, [1, 65_336]).describe(
  "Maximum concurrent requests to this upstream.",
);

const drainSchema = z
  .strictObject({
    timeout: duration("5s", ["100ms", "5s"]).describe("How long an abandoned answer is read."),
    limit: wholeNumber(64, [1, 64]).describe("Maximum abandoned answers read at once."),
  })
  .optional()
  .describe(
    "Reads a stream on when its caller has left, to get the token count, where aborted " +
      "answers are billed anyway. Default: it is aborted.",
  );

const forwardEndUsers = z
  .enum(["pseudonym", "as_sent", "none"])
  .prefault("pseudonym")
  .describe(
    "How names of end users (`user`, `safety_identifier`, `metadata.user_id`) are sent; " +
      "`prompt_cache_key` is a pseudonym unless `as_sent`.",
  );

const stateAccount = text("Id of an account.")
  .optional()
  .describe(
    "Id of the account whose requests may name what this upstream holds, such as files and " +
      "containers. Default: none may.",
  );

export function upstreamsSchema(kinds: readonly UpstreamKind[]) {
  const [first, ...others] = kinds.map(upstreamSchema);
  if (first === undefined) throw new Error("there are no upstream kinds");
  return z
    .record(identifier("Name of the upstream."), z.discriminatedUnion("kind", [first, ...others]))
    .refine((upstreams) => Object.keys(upstreams).length > 0, "must have at least one upstream")
    .describe("Endpoints of providers, by name.");
}

function upstreamSchema(ofKind: UpstreamKind) {
  return z
    .strictObject({
      kind: z.literal(ofKind.name).describe("Protocol of the upstream."),
      ...ofKind.fields,
      timeouts: timeoutsSchema(ofKind.answerTimes),
      connections: connectionsSchema(ofKind.idleConnections),
      tls: upstreamTls,
      max_in_flight: mostInFlight,
      drain: drainSchema,
      forward_end_users: forwardEndUsers,
      state_account: stateAccount,
    })
    .superRefine((upstream, context) => {
      for (const problem of ofKind.contradictions?.(upstream) ?? []) {
        context.addIssue({ code: "custom", path: [...problem.path], message: problem.message });
      }
    })
    .transform((upstream) => {
      const { kind, timeouts, connections, tls, max_in_flight, drain, ...others } = upstream;
      const { forward_end_users, state_account, ...fields } = others;
      const names = { forward_end_users, state_account };
      return { kind, timeouts, connections, tls, max_in_flight, drain, ...names, fields };
    });
}

export type UpstreamsFile = z.output<ReturnType<typeof upstreamsSchema>>;
export interface UpstreamSettings {
  readonly name: string;
  readonly kind: UpstreamKind;
  readonly timeouts: Timeouts;
  readonly connections: ConnectionSettings;
  readonly maxInFlight: number;
  /** Undefined: an answer whose caller has left is aborted. */
  readonly drain: DrainSettings | undefined;
  readonly forwardEndUsers: EndUserForwarding;
  /** Id of the account that may name what the upstream holds. Undefined: none may. */
  readonly stateAccount: string | undefined;
  /** Built by the kind, for its adapter. Values may be secret. */
  readonly settings: unknown;
}

export function buildUpstreams(
  upstreams: UpstreamsFile,
  kinds: readonly UpstreamKind[],
  targetsAt: (upstream: string, kind: string) => readonly FileTarget[],
): ReadonlyMap<string, UpstreamSettings> {
  const built = new Map<string, UpstreamSettings>();
  for (const [name, upstream] of Object.entries(upstreams)) {
    const kind = kindNamed(kinds, upstream.kind);
    const targets = targetsAt(name, kind.name);
    for (const each of kind.build({ name, fields: upstream.fields, targets })) {
      built.set(each.name, { ...each, kind, ...buildShared(upstream) });
    }
  }
  return built;
}

function buildShared({
  timeouts,
  connections,
  tls,
  max_in_flight: maxInFlight,
  drain,
  forward_end_users: forwardEndUsers,
  state_account: stateAccount,
}: UpstreamsFile[string]): Omit<UpstreamSettings, "name" | "kind" | "settings"> {
  return {
    timeouts: {
      connectMs: timeouts.connect,
      firstByteMs: timeouts.first_byte,
      idleMs: timeouts.idle,
      totalMs: timeouts.total,
    },
    connections: buildConnections(connections, tls),
    maxInFlight,
    drain: drain && { timeoutMs: drain.timeout, limit: drain.limit },
    forwardEndUsers,
    stateAccount,
  };
}
