import { formatDuration } from "../duration.ts";
import { cellOf, formatValue, type ReplyRecord } from "../output/reply-fields.ts";
import type { ResourceSpec } from "../verbs/verb-command.ts";

export const processes: ResourceSpec = {
  name: "processes",
  about:
    "Shows each gateway process on the database. KEYS is the number of the last change of keys that it " +
    "has, CONFIGURATION a digest that is equal for equal files, LIMITS one that is equal for equal " +
    "servers of limits.store. A degraded process serves calls but lacks something. One that " +
    "has been silent for 10 s may have ended, or may be cut off from the database.",
  verbs: [
    {
      name: "list",
      isDefault: true,
      operation: "listProcesses",
      columns: [
        "name",
        "number",
        { title: "STATE", of: stateOf },
        "version",
        { title: "KEYS", of: "keys_epoch" },
        { title: "CONFIGURATION", of: "config_digest" },
        { title: "LIMITS", of: "limits_digest" },
        "configured_at",
        "admin_url",
      ],
      whenEmpty: "No gateway process runs on this database.",
      notes: (_, answer) => [
        ...processWarnings(answer).map((text) => `Warning: ${text}`),
        ...(answer["config_differs"] === true
          ? ["Warning: the processes have loaded different configurations."]
          : []),
      ],
      examples: ["processes", "processes --json"],
    },
  ],
};

export function processWarnings({ warnings }: ReplyRecord): readonly string[] {
  return Array.isArray(warnings) ? warnings.map((text) => String(formatValue(text))) : [];
}

function stateOf(row: ReplyRecord): string {
  const { live, ready, silent_ms: silentMs } = row;
  if (live !== true) return `silent for ${formatDuration(Number(silentMs))}`;
  if (ready !== true) return String(cellOf(row, "not_ready"));
  return typeof row["degraded"] === "string" ? "degraded" : "ready";
}
