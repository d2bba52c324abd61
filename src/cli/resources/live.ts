import {
  cellOf,
  printable,
  readPart,
  readRecords,
  type ReplyRecord,
} from "../output/reply-fields.ts";
import { columnOf, formatRecord, formatRecords } from "../output/show-reply.ts";
import type { ResourceSpec } from "../verbs/verb-command.ts";
import type { VerbCall } from "../verbs/verb.ts";

export const targets: ResourceSpec = {
  name: "targets",
  about:
    "Shows each target as the processes of this machine see it, and what it did in the last hour or two. " +
    "RUNNING counts attempts under way, KEYS OUT the keys for which alone it is out. ATTEMPTS are of " +
    "this machine; a call whose attempt failed may have been served by another target.",
  verbs: [
    {
      name: "targets",
      operation: "listTargets",
      columns: [
        { title: "TARGET", of: "id" },
        "state",
        { title: "UNTIL", of: "out_until" },
        { title: "RUNNING", of: "in_flight" },
        { title: "KEYS OUT", of: "keys_out" },
        "calls",
        { title: "FAILED", of: "failed_calls" },
        { title: "FIRST EVENT P95", of: (row) => cellOf(row, "first_event_ms.p95") },
        "attempts",
        { title: "FAILED ATTEMPTS", of: failedAttempts },
        { title: "LAST FAILURE", of: (row) => cellOf(row, "last_failure.at") },
        "why",
      ],
      whenEmpty: "No model has a target.",
      examples: ["targets", "targets --json"],
    },
  ],
};

/** "3 throttled, 1 unavailable". */
function failedAttempts(row: ReplyRecord): string {
  const kinds = Object.entries(readPart(row, "failures") ?? {});
  return kinds.map(([kind, count]) => `${String(count)} ${printable(kind)}`).join(", ") || "-";
}

export const overview: ResourceSpec = {
  name: "overview",
  about: "Lists what needs you now, the worst first. With --json also limits, open calls and sums.",
  verbs: [
    {
      name: "overview",
      operation: "getOverview",
      show: showOverview,
      examples: ["overview", "overview --json"],
    },
  ],
};

function showOverview({ io }: VerbCall, answer: ReplyRecord): void {
  const needs = readRecords(answer, "needs");
  const columns = ["severity", { title: "OF", of: "subject.name" }, "what", "at"].map(columnOf);
  io.print(needs.length === 0 ? "Nothing needs you." : formatRecords(columns, needs));
}

export function showKeyLive({ io }: VerbCall, answer: ReplyRecord): void {
  const use = readPart(answer, "use");
  if (use === undefined) return io.print("No process here accepts the key.");
  const ofUnit = (unit: "requests" | "tokens"): string => {
    const { used, limit, set_by: by } = readPart(use, unit) ?? {};
    const whose = by === "plan" ? `plan ${cellOf(use, "plan")}` : `the ${String(by)}`;
    return `${String(used)} of ${String(limit)} a minute, set by ${whose}`;
  };
  const { guarantee, open_calls: open } = use;
  const windows = { requests: ofUnit("requests"), tokens: ofUnit("tokens"), guarantee };
  io.print(formatRecord({ ...windows, open_calls: open, secrets: answer["secrets"] }));
}
