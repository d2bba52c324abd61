import { z } from "zod";
import { GatewayError } from "../../domain/errors/gateway-error.ts";
import type { AdminCall } from "../../edge/dispatch/route.ts";
import type { Reply } from "../../edge/replies/error-reply.ts";
import type { StreamRoute } from "../admin-routes.ts";
import { playgroundQuerySchema } from "../contract/playground.ts";
import { requireKey } from "../keys/key-view.ts";
import { change } from "../operation/change.ts";
import { permissions } from "../operation/operation.ts";
import { fromStorageError, parseFields, wrongState } from "../operation/refusals.ts";
import { requireRoom } from "../operation/room.ts";
import type { AdminServices, Platform } from "../services.ts";

/** A call that the control plane makes as a key, without a secret of it. */
export interface CallAsKey {
  readonly id: string;
  /** Such as `/v1/messages`. */
  readonly path: string;
  /** Of the environment of the key. */
  readonly host: string;
  readonly keyId: string;
  /** Of the user, for keys that are bound to networks. */
  readonly address: string;
  readonly body: Uint8Array;
  readonly signal: AbortSignal;
}

const apis = {
  callChatCompletions: "chat/completions",
  callEmbeddings: "embeddings",
  callResponses: "responses",
  callMessages: "messages",
} as const;

const room = { ofUser: 10, all: 64, what: "calls of the playground" };

/** Calls of users of the console, as a key under all of its limits. */
export function playgroundRoutes(
  services: AdminServices,
  callAsKey: (call: CallAsKey) => Promise<Response>,
): readonly StreamRoute[] {
  /** Until their answers have ended. */
  const open = new Set<AdminCall>();
  const answerTo = async (call: AdminCall, api: string, query: unknown): Promise<Response> => {
    const body = await call.readBody();
    const { key_id: named } = parseFields(playgroundQuerySchema, query);
    const { host, keyId } = await admit(call, { api, named }, services).catch((error: unknown) => {
      throw fromStorageError(error);
    });
    const { id, address, signal } = call;
    const path = `/v1/${api}`;
    const answer = await callAsKey({ id, path, host, keyId, address, body, signal }).catch(
      (cause: unknown) => {
        signal.throwIfAborted();
        const message = "The process that calls for the playground does not answer. Please retry.";
        throw new GatewayError("model_unavailable", { message, cause });
      },
    );
    // To the console, a 401 means that its user is signed out.
    if (answer.status === 401) throw keyRefused();
    return answer;
  };
  return Object.entries(apis).map(([id, api]) => ({
    description: {
      id,
      method: "POST",
      path: `/admin/v1/playground/${api}`,
      resource: "Playground",
      summary: `Call /v1/${api} as a key`,
      description:
        "The body and the answer are those of the data plane, errors of a call included. The call is " +
        "under the limits of the key and in its usage, marked `via: playground`, and in the audit; " +
        "its text is kept nowhere.",
      ...permissions.manage,
      status: 200,
      query: playgroundQuerySchema,
      answer: z.unknown(),
      downloads: ["application/json", "text/event-stream"],
    },
    async handle(call, query) {
      requireRoom(open, call.principal, room);
      open.add(call);
      const onEnd = (): void => void open.delete(call);
      try {
        return replyOf(await answerTo(call, api, query), onEnd);
      } catch (error) {
        onEnd();
        throw error;
      }
    },
  }));
}

/** Records the call, before it is made; returns the id of the key and a host of its environment. */
function admit(
  call: AdminCall,
  { api, named }: { readonly api: string; readonly named: string },
  services: AdminServices,
): Promise<Pick<CallAsKey, "host" | "keyId">> {
  return change(services, call, async ({ transaction, audit }) => {
    const key = await requireKey(transaction, named, call.principal);
    await audit({
      action: "playground.call",
      subject: { type: "key", id: key.id },
      accountId: key.accountId,
      after: { api },
    });
    return { host: hostOf(key.environment, services.platform()), keyId: key.id };
  });
}

function keyRefused(): GatewayError {
  return wrongState(
    "The gateway refuses this key: it has no live secret, or it, its application or its account is " +
      "revoked, disabled or expired.",
  );
}

/** The environment for all other hosts has no name of its own. */
function hostOf(environment: string, { environments }: Platform): string {
  const hosts = environments.find(({ name }) => name === environment)?.hosts ?? [];
  return hosts.find((host) => host !== "*") ?? "playground.invalid";
}

/** Headers of the connection, and those that the listener sets. */
const ownHeaders = new Set(["connection", "keep-alive", "transfer-encoding", "content-length"]);

function replyOf({ status, headers, body }: Response, onEnd: () => void): Reply {
  const passed = Object.fromEntries([...headers].filter(([name]) => !ownHeaders.has(name)));
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  // The reader sees a failure in what it reads.
  void (body?.pipeTo(writable) ?? writable.close()).catch(() => undefined).finally(onEnd);
  return { status, headers: passed, body: readable };
}
