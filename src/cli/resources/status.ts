import { formatDuration } from "../duration.ts";
import { cellOf, type ReplyRecord } from "../output/reply-fields.ts";
import type { Column } from "../output/show-reply.ts";
import type { ResourceSpec } from "../verbs/verb-command.ts";

const columns: readonly Column[] = [
  {
    title: "PROCESS",
    of: (record) => `${cellOf(record, "process")} ${cellOf(record, "number")}`.replace(" -", ""),
  },
  { title: "PID", of: "pid" },
  { title: "AGE", of: ({ age_ms }) => (typeof age_ms === "number" ? formatDuration(age_ms) : "-") },
  {
    title: "STATE",
    of: (record) => (record["ready"] === true ? "ready" : cellOf(record, "not_ready")),
  },
  { title: "OPEN", of: "open_calls" },
  { title: "CALLS", of: "calls" },
  { title: "MEMORY MB", of: (record) => inUnit(record, "resident_bytes", 1e6) },
  { title: "DELAY MS", of: "loop_delay_longest_ms" },
  { title: "P99 MS", of: "loop_delay_p99_ms" },
  { title: "SPOOL KB", of: (record) => inUnit(record, "spool_bytes", 1e3) },
  { title: "ROWS", of: "waiting_rows" },
  { title: "KEYS", of: "keys_generation" },
  { title: "CONFIGURED", of: "configured_at" },
];

function inUnit(record: ReplyRecord, name: string, unit: number): string | number {
  const value = record[name];
  return typeof value === "number" ? Math.round(value / unit) : "-";
}

export const status: ResourceSpec = {
  name: "status",
  about:
    "Shows each process of the gateway, at most a second old. OPEN are the calls in " +
    "progress, CALLS those since the process started. DELAY is the longest delay of its " +
    "event loop in the last minute, P99 the 99th percentile. SPOOL is the size of its spool, " +
    "ROWS the usage rows in it that are not stored yet. KEYS and CONFIGURED are its " +
    "generations of keys and configuration; soon after a change all processes agree.",
  verbs: [
    {
      name: "status",
      operation: "getStatus",
      columns,
      whenEmpty: "Only a running gateway has processes.",
      examples: ["status", "status --json"],
    },
  ],
};
