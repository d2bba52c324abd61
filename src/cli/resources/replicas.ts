import { formatDuration } from "../duration.ts";
import { cellOf, type ReplyRecord } from "../output/reply-fields.ts";
import type { ResourceSpec } from "../verbs/verb-command.ts";

export const replicas: ResourceSpec = {
  name: "replicas",
  about:
    "Shows each gateway on the database. KEYS is the number of the last change of keys that all its " +
    "workers have, CONFIGURATION a digest that is equal for equal files. One that is silent for 10 s " +
    "may have ended, or may be cut off from the database.",
  defaultVerb: "list",
  verbs: [
    {
      name: "list",
      operation: "listReplicas",
      columns: [
        "name",
        { title: "STATE", of: stateOf },
        "version",
        "workers",
        { title: "KEYS", of: "keys_epoch" },
        { title: "CONFIGURATION", of: "config_digest" },
        "configured_at",
        "admin_url",
      ],
      whenEmpty: "No gateway runs on this database.",
      notes: (_, { config_differs: differs }) =>
        differs === true ? ["Warning: the gateways have loaded different configurations."] : [],
      examples: ["replicas", "replicas --json"],
    },
  ],
};

function stateOf(replica: ReplyRecord): string {
  const { live, ready, silent_ms: silentMs } = replica;
  if (live !== true) return `silent for ${formatDuration(Number(silentMs))}`;
  return ready === true ? "ready" : String(cellOf(replica, "not_ready"));
}
