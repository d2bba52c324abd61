import { formatDuration } from "../duration.ts";
import { cellOf, formatValue, readPart, type ReplyRecord } from "../output/reply-fields.ts";
import { type Fact, formatFacts } from "./explain-call.ts";

/** Formats a refusal for people: its rule, the caller, and the window. `call` is its row. */
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
  return [head, "", ...lines].join("\n");
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
