import { isObject } from "../../domain/json-object.ts";
import { commandLine } from "../program.ts";
import { shortUsd } from "../output/usd.ts";
import { formatDuration } from "../duration.ts";
import {
  cellOf,
  formatValue,
  readPart,
  readRecords,
  type ReplyRecord,
} from "../output/reply-fields.ts";
import { type Column, columnOf, formatRecords } from "../output/show-reply.ts";

export function formatCall(call: ReplyRecord): string {
  const of = (name: string): string | number => cellOf(call, name);
  const code = typeof call["code"] === "string" ? ` ${of("code")}` : "";
  const status = `status ${of("status")}${code}`;
  const came = `It came at ${of("started_at")} UTC and`;
  // A call that failed without an attempt was refused.
  const isRefused = call["outcome"] === "failed" && call["attempts"] === 0;
  const head = isRefused
    ? `The gateway refused this call. ${came} got ${status}. The reason is no longer kept: ` +
      "only the last 20 errors of each key (of frequent ones, fewer) are, until the gateway restarts."
    : `The gateway did not refuse this call. ${came} ${outcomes[of("outcome")] ?? "ended"}: ${status}.`;
  const isInterrupted = call["outcome"] === "interrupted";
  const first = typeof call["first_event_ms"] === "number" ? `${of("first_event_ms")} ms` : "-";
  const facts = formatFacts([
    ["Key", of("key_id")],
    ["Application", `${of("application")} in ${of("environment")}`],
    ["Account", of("account_id")],
    ["Model", of("model")],
    ["Dialect", `${of("dialect")}${call["via"] === "playground" ? ", from the playground" : ""}`],
    ["Target", `${of("target")} (${of("class")}), attempts: ${of("attempts")}`],
    [
      "Input",
      `${of("input_tokens")} tokens, ${of("cached_input_tokens")} of them cached, ` +
        `${of("cache_write_tokens")} written to the cache`,
    ],
    ["Output", `${of("output_tokens")} tokens${isInterrupted ? " before the interruption" : ""}`],
    ["Cost", formatCost(call)],
    ["Count", sources[of("usage_source")] ?? "-"],
    ["Duration", `${of("duration_ms")} ms, first event after ${first}`],
    ...(typeof call["end_user"] === "string" ? [["End user", of("end_user")] as const] : []),
    ...(isObject(call["tags"]) ? [["Tags", of("tags")] as const] : []),
    ["Billing", call["may_be_billed_twice"] === true ? billedTwice : "once"],
  ]);
  return [head, "", ...facts, ...formatRouting(call)].join("\n");
}

/** Such as `0.0124 USD by version 3 of the prices: 500 output at 10`, prices in USD per 1M tokens. */
function formatCost(call: ReplyRecord): string {
  const { cost_usd: cost, repriced_usd: repriced, price_version: version } = call;
  if (typeof cost !== "string") return "not priced: something that it used has no price";
  if (call["outcome"] === "interrupted" && typeof repriced !== "string") {
    return `${shortUsd(cost)} USD, as reserved: what it really used is not known`;
  }
  const parts = Array.isArray(call["cost_parts"]) ? readRecords(call, "cost_parts") : [];
  const rates = parts.map((part) => {
    const item = String(cellOf(part, "item")).replaceAll("_", " ");
    return `${cellOf(part, "tokens")} ${item} at ${cellOf(part, "usd_per_million")}`;
  });
  const table = typeof version === "number" ? ` by version ${version} of the prices` : "";
  const sum = rates.length === 0 ? "" : `: ${rates.join(", ")} USD per 1M tokens`;
  const again = typeof repriced === "string" ? `; priced again: ${shortUsd(repriced)} USD` : "";
  return `${shortUsd(cost)} USD${table}${sum}${again}`;
}

const outcomes: Readonly<Record<string, string>> = {
  completed: "was answered",
  failed: "failed",
  abandoned: "was abandoned by its caller",
  interrupted: "was interrupted when the gateway's process ended",
};

const sources: Readonly<Record<string, string>> = {
  upstream: "by the upstream",
  counted: "of what was delivered; the upstream did not count",
  estimated: "estimated; the upstream did not count",
  bounded: "by the upstream, limited to what the call can have used",
};

const billedTwice =
  "possibly twice: the provider may have completed an attempt that did not answer";

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

type Fact = readonly [name: string, value: string | number];

function formatFacts(facts: readonly Fact[]): readonly string[] {
  return facts.map(([name, value]) => `  ${name.padEnd(11)}  ${value}`);
}

function formatSteps(
  title: string,
  columns: readonly (string | Column)[],
  steps: readonly ReplyRecord[],
): readonly string[] {
  const number = { title: "", of: (step: ReplyRecord) => steps.indexOf(step) + 1 };
  const table = formatRecords([number, ...columns.map(columnOf)], steps);
  return ["", title, table.replaceAll(/^/gm, "  ")];
}

/** Formats a refusal for people: its rule, the caller, and the window. `call` is its row. */
export function formatRefusal(refusal: ReplyRecord, call: ReplyRecord = {}): string {
  const of = (name: string): string | number => cellOf(refusal, name);
  const ofCall = (name: string): string | number => cellOf(call, name);
  const code = refusal["code"] === null ? "" : ` ${of("code")}`;
  // These the gateway did not decide.
  const isFailure = ["internal_error", "answer_mismatch", "deadline"].includes(String(of("rule")));
  const isAudited = refusal["is_audited"] === true;
  const verb = isFailure ? "Failed" : isAudited ? "Would have been refused" : "Refused";
  const isSame = refusal["caller_status"] === refusal["status"] || of("caller_status") === "-";
  const seen = isSame ? "" : ` (the caller saw ${of("caller_status")})`;
  const head = `${verb} with ${of("status")}${code}${seen} at ${of("at")} UTC: ${of("summary")}`;
  const environment = typeof refusal["environment"] === "string" ? ` in ${of("environment")}` : "";
  const window = readPart(refusal, "window");
  const budget = readPart(refusal, "budget");
  const facts: readonly Fact[] = [
    ["Rule", of("rule")],
    ["Key", formatKey(refusal)],
    ["Application", `${of("application")}${environment}`],
    ["Account", of("account_id")],
    ["Model", typeof refusal["model"] === "string" ? of("model") : ofCall("model")],
    ["Dialect", of("dialect")],
    ["Target", ofCall("target")],
    ["End user", ofCall("end_user")],
    ["Tags", ofCall("tags")],
    ["Plan", of("plan")],
    ["Field", of("param")],
    ...(window === undefined ? [] : windowFacts(refusal, window)),
    ...(budget === undefined ? [] : budgetFacts(budget)),
  ];
  const lines = formatFacts(facts.filter(([, value]) => value !== "-"));
  return [head, "", ...lines].join("\n");
}

function formatKey(refusal: ReplyRecord): string | number {
  const { key_id: id, public_id: secret } = refusal;
  if (typeof secret !== "string") return cellOf(refusal, "key_id");
  const shown = formatValue(`sk-slc_${secret}`);
  return typeof id === "string" ? `${cellOf(refusal, "key_id")} (${shown})` : shown;
}

function budgetFacts(budget: ReplyRecord): readonly Fact[] {
  const of = (name: string): string | number => cellOf(budget, name);
  const model = typeof budget["model"] === "string" ? `, for ${of("model")}` : "";
  const each = budget["each_end_user"] === true ? "each end user of " : "";
  const reset = typeof budget["resets_at"] === "string" ? `${of("resets_at")} UTC` : "never";
  const raise = commandLine(`budgets update ${of("id")} --limit-usd USD`);
  return [
    [
      "Budget",
      `${of("id")}: ${of("limit_usd")} USD (${of("period")}) of ${each}the ${of("scope")}${model}`,
    ],
    [
      "Spent",
      `${of("spent_usd")} USD, and ${of("reserved_usd")} reserved; the request needed ` +
        `${of("requested_usd")}`,
    ],
    ["Resets", reset],
    ["Raise it", `\`${raise}\`${budget["set_by"] === "operator" ? ", by an operator" : ""}`],
  ];
}

function windowFacts(refusal: ReplyRecord, window: ReplyRecord): readonly Fact[] {
  const of = (name: string): string | number => cellOf(window, name);
  const free = window["free_at"];
  const waitMs = Date.parse(String(free)) - Date.parse(String(refusal["at"]));
  return [
    ["Window", `${of("used")} of ${of("limit")} used; the request needed ${of("requested")}`],
    [
      "Free",
      typeof free === "string"
        ? `${formatDuration(waitMs)} later, at ${of("free_at")} UTC, without other requests`
        : "never: the request is larger than the limit itself",
    ],
  ];
}
