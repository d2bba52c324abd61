import { cellOf, readPart, readRecords, type ReplyRecord } from "../output/reply-fields.ts";
import { formatTable } from "../output/table.ts";

/** Formats the routing of a call for people; no lines for the plain case. */
export function formatRouting(call: ReplyRecord): readonly string[] {
  const routing = readPart(call, "routing");
  if (routing === undefined) return [];
  return [
    ...formatCandidates(readRecords(routing, "candidates")),
    ...formatAttempts(readRecords(routing, "attempts")),
  ];
}

function formatCandidates(candidates: readonly ReplyRecord[]): readonly string[] {
  if (candidates.length === 0) return [];
  const rows = candidates.map((each, index) => [
    index + 1,
    cellOf(each, "target"),
    cellOf(each, "model"),
    cellOf(each, "why"),
  ]);
  const table = formatTable(["", "TARGET", "MODEL", "WHY"], rows);
  return ["", "Targets, in the order in which they were to be tried:", indent(table)];
}

function formatAttempts(attempts: readonly ReplyRecord[]): readonly string[] {
  if (attempts.length === 0) return ["", "No target was tried."];
  const rows = attempts.map((each, index) => [
    index + 1,
    cellOf(each, "target"),
    cellOf(each, "model"),
    cellOf(each, "start_ms"),
    cellOf(each, "duration_ms"),
    describeOutcome(each),
    typeof each["decision"] === "string" ? each["decision"] : "",
  ]);
  const table = formatTable(["", "TARGET", "MODEL", "AT MS", "MS", "OUTCOME", "THEN"], rows);
  return ["", "Attempts:", indent(table)];
}

function describeOutcome(attempt: ReplyRecord): string {
  const outcome = String(cellOf(attempt, "outcome"));
  // Older rows mark answers too, which are the call's own bill.
  const isBilledBeside = attempt["may_be_billed"] === true && outcome !== "answered";
  return isBilledBeside ? `${outcome}; the provider may bill it` : outcome;
}

function indent(text: string): string {
  return text
    .split("\n")
    .map((line) => `  ${line}`)
    .join("\n");
}
