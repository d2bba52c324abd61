import { callTags } from "../../call/hooks.ts";
import type { Clock } from "../../domain/clock.ts";
import { randomBase62, type RandomBytes } from "../../domain/keys/base62.ts";
import type { TelemetryEvents } from "../../telemetry/events/events.ts";
import type { ApiSettings } from "../../dialects/read-call.ts";
import type { Config } from "../../config/config.ts";
import type { Environment } from "../../domain/model.ts";
import { createNetworkList } from "../../domain/network.ts";
import { isSameValue } from "../../domain/json-object.ts";
import { CorsPolicy } from "../../edge/cors.ts";
import type { EdgeSettings } from "../../edge/dispatch/dispatch-options.ts";
import type { CallHook } from "../../snapshot/call-hooks.ts";
import type { Snapshot, Upstream } from "../../snapshot/snapshot.ts";

/** Malformed events skipped in one answer; more than this is no accident. */
const mostMalformedEvents = 10;

/** The parts of a snapshot that do not come from the configuration. */
export interface SnapshotParts {
  readonly clock: Clock;
  readonly randomBytes: RandomBytes;
  readonly onTrouble: TelemetryEvents["upstreamTrouble"];
  readonly hooks: readonly CallHook[];
}

/** The replaced configuration and its snapshot. */
export interface Replaced {
  readonly config: Config;
  readonly snapshot: Snapshot;
}

export function buildSnapshot(config: Config, parts: SnapshotParts, before?: Replaced): Snapshot {
  const environmentsByHost = new Map<string, Environment>();
  let defaultEnvironment: Environment | undefined;
  for (const { hosts, ...environment } of config.environments) {
    for (const host of hosts) {
      if (host === "*") defaultEnvironment = environment;
      else environmentsByHost.set(host, environment);
    }
  }
  return {
    environmentsByHost,
    defaultEnvironment,
    plans: config.plans,
    pools: config.pools,
    routing: config.routing,
    upstreams: buildUpstreams(config, parts, before),
    settings: {
      answerLimitBytes: {
        chat: config.answers.chatLimitBytes,
        embedding: config.answers.embeddingLimitBytes,
      },
      chatAnswerValues: config.answers.chatValues,
      malformedEvents: config.streams.malformedEvent === "skip" ? mostMalformedEvents : 0,
      imageFetch: config.imageFetch,
      endUsers: config.endUsers,
      tags: config.tags,
      usageTimeoutMs: config.streams.usageTimeoutMs,
      sampling: config.telemetry.otlp?.sendsTraces === true ? config.telemetry.otlp : undefined,
    },
    hooks: parts.hooks,
  };
}

function buildUpstreams(
  config: Config,
  { clock, randomBytes, onTrouble }: SnapshotParts,
  before: Replaced | undefined,
): ReadonlyMap<string, Upstream> {
  const upstreams = new Map<string, Upstream>();
  for (const [name, upstream] of config.upstreams) {
    const earlier = before?.snapshot.upstreams.get(name);
    // An adapter may hold credentials that took long to get, so it is kept while its settings
    // match.
    const isSame = isSameValue(upstream, before?.config.upstreams.get(name));
    const kept = isSame ? earlier?.adapter : undefined;
    const adapter =
      kept ??
      upstream.kind.createAdapter(upstream.settings, {
        clock,
        newToolCallId: () => `call_${randomBase62(24, randomBytes)}`,
        onTrouble: (what) => onTrouble(name, what),
      });
    const { timeouts, connections, maxInFlight, drain, forwardEndUsers, stateAccount } = upstream;
    const ways = { timeouts, connections, maxInFlight, drain, forwardEndUsers, stateAccount };
    upstreams.set(name, { name, adapter, ...ways });
  }
  return upstreams;
}

export function buildEdge({ http }: Config): EdgeSettings {
  const cors = new CorsPolicy(http.allowedOrigins);
  const trustedProxies = createNetworkList(http.trustedProxies);
  return { cors, bodyLimits: http, maxHeaders: http.maxHeaders, trustedProxies };
}

export function buildApiSettings({ streams, http }: Pick<Config, "streams" | "http">): ApiSettings {
  return { ...streams, decodedLimitBytes: http.decompressedLimitBytes };
}

/** The configured hooks in the order they run. */
export function buildHooks(
  { hooks: { callTagHeader: header } }: Pick<Config, "hooks">,
  events: Pick<TelemetryEvents, "callTagged">,
): readonly CallHook[] {
  return header === undefined
    ? []
    : [callTags({ header, onTagged: (call) => events.callTagged(call) })];
}
