import type { AdminCall } from "../../edge/dispatch/route.ts";
import type { Reply } from "../../edge/replies/error-reply.ts";
import {
  eventStream,
  eventStreamHeaders,
  keepAliveComment,
} from "../../edge/replies/event-stream.ts";
import { liveQuerySchema, liveTopics, type LiveTopic } from "../contract/live.ts";
import { requireKey } from "../keys/key-view.ts";
import { type OperationDescription, permissions } from "../operation/operation.ts";
import { fromStorageError, invalidField, parseFields } from "../operation/refusals.ts";
import { requireUnbound } from "../operation/scope.ts";
import type { AdminServices } from "../services.ts";
import type { LiveHub } from "./live-hub.ts";

const keepAliveMs = 15_000;
/** A reader that takes nothing for so long is cut off. */
const writeTimeoutMs = 60_000;
const mostKeys = 10;
const ofAccounts: ReadonlySet<LiveTopic> = new Set(["keys", "key", "calls"]);

export const liveDescription: OperationDescription = {
  id: "watchLive",
  method: "GET",
  path: "/admin/v1/live",
  resource: "Live",
  summary: "Watch what is live, as server-sent events",
  description:
    "An event `full`, then each second a `change` if there is any: a JSON object with the items of each " +
    "topic by id, null for one that is gone. An event `end` tells that the session is over. It does " +
    "not count as use of the session. `keys`, `key` and `calls` are for all, the other topics for who " +
    "sees all accounts.",
  ...permissions.read,
  status: 200,
  query: liveQuerySchema,
  answer: liveQuerySchema,
  downloads: ["text/event-stream"],
};

/** Throws 400, 403 and 404 as operations do, and 429 when too many watch. */
export async function watchLive(
  { call, query }: { readonly call: AdminCall; readonly query: unknown },
  hub: LiveHub,
  { store, clock }: AdminServices,
): Promise<Reply> {
  const { topics: named, key_id: ids } = parseFields(liveQuerySchema, query);
  const keyIds = ids?.split(",") ?? [];
  if (keyIds.length > mostKeys) throw invalidField("key_id", `name at most ${mostKeys} keys`);
  const topics = readTopics(named);
  if (topics.some((topic) => !ofAccounts.has(topic))) requireUnbound(call.principal);
  if (topics.includes("key") !== (ids !== undefined)) {
    throw invalidField("key_id", "name a key for the topic `key`, and only for it");
  }
  const found = store.read((view) =>
    Promise.all(keyIds.map((id) => requireKey(view, id, call.principal))),
  );
  const keys = await found.catch((error: unknown) => {
    throw fromStorageError(error);
  });
  const body = eventStream(hub.watch({ call, topics, keyIds: keys.map(({ id }) => id) }), {
    clock,
    keepAliveMs,
    keepAlive: () => keepAliveComment,
    beginsWithKeepAlive: true,
    writeTimeoutMs,
    onEnd: () => false,
  });
  return { status: 200, headers: eventStreamHeaders, body };
}

function readTopics(text: string): readonly LiveTopic[] {
  const names = new Set(text.split(","));
  const topics = liveTopics.filter((topic) => names.has(topic));
  if (topics.length === names.size) return topics;
  throw invalidField("topics", `use any of ${liveTopics.join(", ")}, separated by commas`);
}
