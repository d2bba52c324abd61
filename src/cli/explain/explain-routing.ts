import { cellOf, readPart, readRecords, type ReplyRecord } from "../output/reply-fields.ts";
import { formatSteps } from "./facts.ts";

const attemptColumns = [
  "target",
  "model",
  { title: "AT MS", of: "start_ms" },
  { title: "MS", of: "duration_ms" },
  { title: "OUTCOME", of: describeOutcome },
  {
    title: "THEN",
    of: ({ decision }: ReplyRecord) => (typeof decision === "string" ? decision : ""),
  },
];

/** Formats the routing of a call for people; no lines in the usual case. */
export function formatRouting(call: ReplyRecord): readonly string[] {
  const routing = readPart(call, "routing");
  if (routing === undefined) return [];
  const candidates = readRecords(routing, "candidates");
  const attempts = readRecords(routing, "attempts");
  const order = "Targets, in order of preference:";
  return [
    ...(candidates.length === 0 ? [] : formatSteps(order, ["target", "model", "why"], candidates)),
    ...(attempts.length === 0
      ? ["", "No target was tried."]
      : formatSteps("Attempts:", attemptColumns, attempts)),
  ];
}

function describeOutcome(attempt: ReplyRecord): string {
  const outcome = String(cellOf(attempt, "outcome"));
  // Older rows mark answers too, but those are what the call itself is billed for.
  const isBilledBeside = attempt["may_be_billed"] === true && outcome !== "answered";
  return isBilledBeside ? `${outcome}; may be billed` : outcome;
}
