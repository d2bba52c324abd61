import { formatRouting } from "./explain-routing.ts";
import { cellOf, formatValue, type ReplyRecord } from "../output/reply-fields.ts";

/** Formats a row of the ledger for people. */
export function formatCall(call: ReplyRecord): string {
  const code = typeof call["code"] === "string" ? ` ${cellOf(call, "code")}` : "";
  const status = `status ${cellOf(call, "status")}${code}`;
  const came = `It came at ${cellOf(call, "started_at")} UTC and`;
  // A call that failed without an attempt was refused.
  const isRefused = call["outcome"] === "failed" && call["attempts"] === 0;
  const head = isRefused
    ? `The gateway refused this call. ${came} got ${status}. The reason is not known any more: it is ` +
      "kept in memory, for the latest refusals of a key, until the gateway restarts."
    : `The gateway did not refuse this call. ${came} ${describeOutcome(call["outcome"])}: ${status}.`;
  const cached =
    `${cellOf(call, "cached_input_tokens")} of them cached, ` +
    `${cellOf(call, "cache_write_tokens")} written to the cache`;
  const facts = [
    ["Key", cellOf(call, "key_id")],
    ["Application", `${cellOf(call, "application")} in ${cellOf(call, "environment")}`],
    ["Account", cellOf(call, "account_id")],
    ["Model", cellOf(call, "model")],
    [
      "Target",
      `${cellOf(call, "target")} (${cellOf(call, "class")}), attempts: ${cellOf(call, "attempts")}`,
    ],
    ["Input", `${cellOf(call, "input_tokens")} tokens, ${cached}`],
    ["Output", `${cellOf(call, "output_tokens")} tokens`],
    ["Count", describeSource(call["usage_source"])],
    ["Duration", `${cellOf(call, "duration_ms")} ms, first event after ${describeFirst(call)}`],
    ["Billing", describeBilling(call["may_be_billed_twice"])],
  ] as const;
  const lines = facts.map(([name, value]) => `  ${name.padEnd(11)}  ${value}`);
  return [head, "", ...lines, ...formatRouting(call)].join("\n");
}

function describeOutcome(outcome: unknown): string {
  switch (outcome) {
    case "completed":
      return "was answered";
    case "failed":
      return "failed";
    case "abandoned":
      return "was left by its caller";
    case "interrupted":
      return "was cut off when the gateway's process ended";
    default:
      return "ended";
  }
}

function describeSource(source: unknown): string {
  switch (source) {
    case "upstream":
      return "as the upstream said";
    case "counted":
      return "of what was delivered: the upstream did not say";
    case "estimated":
      return "estimated: the upstream did not say";
    default:
      return "-";
  }
}

function describeBilling(mayBeBilledTwice: unknown): string {
  return mayBeBilledTwice === true
    ? "the provider may bill it twice: an attempt that brought nothing may have been done all the same"
    : "once";
}

function describeFirst(call: ReplyRecord): string {
  const first = call["first_event_ms"];
  return typeof first === "number" ? `${formatValue(first)} ms` : "-";
}
