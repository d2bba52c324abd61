import { formatDuration } from "../duration.ts";
import {
  cellOf,
  formatValue,
  readPart,
  readRecords,
  type ReplyRecord,
} from "../output/reply-fields.ts";
import { formatWindowChart } from "./window-chart.ts";

/** Formats a refusal for people: its rule, the caller, and the content of the window. */
export function formatRefusal(refusal: ReplyRecord): string {
  const code = refusal["code"] === null ? "" : ` ${cellOf(refusal, "code")}`;
  const head = `Refused with ${cellOf(refusal, "status")}${code} at ${cellOf(refusal, "at")} UTC: ${cellOf(refusal, "summary")}`;
  const window = readPart(refusal, "window");
  const facts = [
    ["Rule", cellOf(refusal, "rule")],
    ["Key", formatKey(refusal)],
    ["Application", formatApplication(refusal)],
    ["Account", cellOf(refusal, "account_id")],
    ["Model", cellOf(refusal, "model")],
    ...(window === undefined ? [] : windowFacts(refusal, window)),
  ] as const;
  const lines = facts
    .filter(([, value]) => value !== "-")
    .map(([name, value]) => `  ${name.padEnd(11)}  ${value}`);
  const chart = window === undefined ? "" : formatChart(refusal, window);
  return [head, "", ...lines, ...(chart === "" ? [] : ["", chart])].join("\n");
}

function formatKey(refusal: ReplyRecord): string | number {
  const secret = refusal["public_id"];
  if (typeof secret !== "string") return cellOf(refusal, "key_id");
  const shown = formatValue(`sk-slc_${secret}`);
  return typeof refusal["key_id"] === "string" ? `${cellOf(refusal, "key_id")} (${shown})` : shown;
}

function formatApplication(refusal: ReplyRecord): string | number {
  if (typeof refusal["environment"] !== "string") return cellOf(refusal, "application");
  return `${cellOf(refusal, "application")} in ${cellOf(refusal, "environment")}`;
}

function windowFacts(
  refusal: ReplyRecord,
  window: ReplyRecord,
): readonly (readonly [string, string])[] {
  const [limit, used, requested] = ["limit", "used", "requested"].map((name) =>
    cellOf(window, name),
  );
  return [
    ["Window", `${used} of ${limit} used; the request needed ${requested}`],
    ["Free", formatFree(refusal, window)],
  ];
}

function formatFree(refusal: ReplyRecord, window: ReplyRecord): string {
  const free = window["free_at"];
  if (typeof free !== "string") return "never: the request is larger than the limit itself";
  const waitMs = Date.parse(free) - Date.parse(String(refusal["at"]));
  return `${formatDuration(waitMs)} later, at ${cellOf(window, "free_at")} UTC, if nothing else came`;
}

function formatChart(refusal: ReplyRecord, window: ReplyRecord): string {
  const unit = refusal["rule"] === "requests_per_minute" ? "requests" : "tokens";
  const slots = readRecords(window, "slots").map((slot) => ({
    ageMs: Number(slot["age_ms"]),
    amount: Number(slot[unit]),
  }));
  if (slots.length === 0) return "";
  return `  What the window held, ${unit} by the second of their admission:\n\n${formatWindowChart(slots)}`;
}
