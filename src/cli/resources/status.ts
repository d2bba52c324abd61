import { formatDuration } from "../duration.ts";
import { cellOf, readRecord, readRecords, type ReplyRecord } from "../output/reply-fields.ts";
import { showAnswer } from "../verbs/run-verb.ts";
import type { VerbCall } from "../verbs/verb.ts";
import type { Column } from "../output/show-reply.ts";
import type { ResourceSpec } from "../verbs/verb-command.ts";

const columns: readonly (string | Column)[] = [
  "process",
  { title: "PID", of: "pid" },
  { title: "AGE", of: ({ age_ms }) => (typeof age_ms === "number" ? formatDuration(age_ms) : "-") },
  {
    title: "STATE",
    of: stateOf,
  },
  { title: "OPEN", of: "open_calls" },
  { title: "CALLS", of: "calls" },
  { title: "MB", of: (record) => inUnit(record, "resident_bytes", 1e6) },
  { title: "DELAY", of: "loop_delay_longest_ms" },
  { title: "P99", of: "loop_delay_p99_ms" },
  { title: "KB", of: (record) => inUnit(record, "spool_bytes", 1e3) },
  { title: "ROWS", of: "waiting_rows" },
  "version",
];

function nameOf(record: ReplyRecord): string {
  return `process ${cellOf(record, "process")}`;
}

function stateOf(record: ReplyRecord): string | number {
  if (record["ready"] !== true) return cellOf(record, "not_ready");
  return typeof record["degraded"] === "string" ? "degraded" : "ready";
}

/** What processes that serve lack; a cell would be too narrow. */
function lacks(processes: readonly ReplyRecord[]): readonly string[] {
  return processes
    .filter(({ ready, degraded }) => ready === true && typeof degraded === "string")
    .map((each) => `${nameOf(each)} is degraded: ${cellOf(each, "degraded")}.`);
}

function inUnit(record: ReplyRecord, name: string, unit: number): string | number {
  const value = record[name];
  return typeof value === "number" ? Math.round(value / unit) : "-";
}

export const status: ResourceSpec = {
  name: "status",
  about:
    "Shows the gateway processes of the machine as they were a second ago at most, and the last calls that " +
    "failed through no fault of their callers. OPEN counts the calls in progress, CALLS all calls since " +
    "the process started. MB is its memory. DELAY is the longest delay of its event loop in the last " +
    "minute, P99 the 99th percentile, both in milliseconds. KB is the size of its spool, ROWS the usage " +
    "rows in it that are not stored yet.",
  verbs: [
    {
      name: "status",
      operation: "getStatus",
      columns,
      whenEmpty: "Only a running gateway has processes.",
      notes: (_, answer) => lacks(readRecords(answer, "data")),
      run: showStatus,
      examples: ["status", "status --json"],
    },
  ],
};

/** Refusals to look through, most of which are faults of callers: as many as the API returns. */
const searched = 500;

const shownErrors = 5;

async function showStatus(call: VerbCall): Promise<number> {
  const { client, isJson, io } = call;
  const exitCode = await showAnswer(call, readRecord(await client.request("GET", "/status")));
  if (isJson || client.isOffline) return exitCode;
  const { data } = readRecord(
    await client.request("GET", "/refusals", { query: { limit: searched } }),
  );
  const failed = readRecords({ data }, "data").filter(({ status: code }) => Number(code) >= 500);
  if (failed.length === 0) return exitCode;
  io.print(`\nLast errors (\`explain ID\` tells more; \`refusals\` has all):\n`);
  for (const error of failed.slice(0, shownErrors)) {
    const facts = ["at", "status", "model", "id"].map((name) => cellOf(error, name));
    io.print(`${facts.join("  ")}\n  ${cellOf(error, "summary")}`);
  }
  return exitCode;
}
