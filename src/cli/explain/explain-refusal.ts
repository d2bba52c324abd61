import { formatDuration } from "../duration.ts";
import {
  cellOf,
  formatValue,
  readPart,
  readRecords,
  type ReplyRecord,
} from "../output/reply-fields.ts";
import { type Fact, formatFacts } from "./explain-call.ts";

/** Formats a refusal for people: its rule, the caller, and the content of the window. `call` is its row. */
export function formatRefusal(refusal: ReplyRecord, call: ReplyRecord = {}): string {
  const of = (name: string): string | number => cellOf(refusal, name);
  const ofCall = (name: string): string | number => cellOf(call, name);
  const code = refusal["code"] === null ? "" : ` ${of("code")}`;
  // These the gateway did not decide.
  const verb = ["internal_error", "answer_mismatch", "deadline"].includes(String(of("rule")))
    ? "Failed"
    : "Refused";
  const head = `${verb} with ${of("status")}${code} at ${of("at")} UTC: ${of("summary")}`;
  const environment = typeof refusal["environment"] === "string" ? ` in ${of("environment")}` : "";
  const window = readPart(refusal, "window");
  const facts: readonly Fact[] = [
    ["Rule", of("rule")],
    ["Key", formatKey(refusal)],
    ["Application", `${of("application")}${environment}`],
    ["Account", of("account_id")],
    ["Model", typeof refusal["model"] === "string" ? of("model") : ofCall("model")],
    ["Target", ofCall("target")],
    ["Field", of("param")],
    ...(window === undefined ? [] : windowFacts(refusal, window)),
  ];
  const lines = formatFacts(facts.filter(([, value]) => value !== "-"));
  return [head, "", ...lines, ...(window === undefined ? [] : formatChart(refusal, window))].join(
    "\n",
  );
}

function formatKey(refusal: ReplyRecord): string | number {
  const { key_id: id, public_id: secret } = refusal;
  if (typeof secret !== "string") return cellOf(refusal, "key_id");
  const shown = formatValue(`sk-slc_${secret}`);
  return typeof id === "string" ? `${cellOf(refusal, "key_id")} (${shown})` : shown;
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

function formatChart(refusal: ReplyRecord, window: ReplyRecord): readonly string[] {
  const unit = refusal["rule"] === "requests_per_minute" ? "requests" : "tokens";
  const slots = readRecords(window, "slots").map((slot) => ({
    ageMs: Number(slot["age_ms"]),
    amount: Number(slot[unit]),
  }));
  if (slots.length === 0) return [];
  const title = `  The window, ${unit} by the second of their admission:`;
  return ["", title, "", formatWindowChart(slots)];
}

/** The tokens or requests admitted in one second of a window. */
interface ChartSlot {
  /** Time since the second began, in milliseconds. */
  readonly ageMs: number;
  readonly amount: number;
}

/** The window's 60 seconds and the current one. */
const seconds = 61;
const rows = 6;
/** Columns of 0 to 8 eighths. */
const blocks = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"] as const;

/** Draws a column for each second, the oldest at the left. */
export function formatWindowChart(slots: readonly ChartSlot[]): string {
  const amounts = Array.from({ length: seconds }, () => 0);
  for (const { ageMs, amount } of slots) {
    const column = seconds - 1 - Math.min(Math.max(Math.floor(ageMs / 1000), 0), seconds - 1);
    amounts[column] = (amounts[column] ?? 0) + amount;
  }
  const highest = Math.max(...amounts);
  const eighths = amounts.map((amount) => heightOf(amount, highest));
  const label = String(Math.round(highest));
  const lines = Array.from({ length: rows }, (_, line) => {
    const floor = (rows - 1 - line) * 8;
    const columns = eighths.map((height) => blocks[Math.min(Math.max(height - floor, 0), 8)]);
    const axis = line === 0 ? label : line === rows - 1 ? "0" : "";
    return `  ${axis.padStart(label.length)} |${columns.join("")}`.trimEnd();
  });
  const indent = " ".repeat(label.length + 3);
  const scale = `${indent}+${"-".repeat(seconds)}`;
  const [left, right] = ["60 s before", "the refusal"];
  const caption = `${indent} ${left}${right.padStart(seconds - left.length)}`;
  return [...lines, scale, caption].join("\n");
}

/** At least one eighth for a second that is not empty. */
function heightOf(amount: number, highest: number): number {
  if (amount <= 0) return 0;
  return Math.max(Math.round((amount / highest) * rows * 8), 1);
}
