import { jsonReply, type Reply } from "../frame.ts";
import { isRecord, listOf, recordOf, type JsonRecord } from "../read-json.ts";
import type { Fault, FaultMode } from "./fault-mode.ts";
import { inflatedUsage } from "./inflated-usage.ts";

/** What an unstreamed answer has besides its body. */
export interface BodyDetails {
  readonly fault: Fault;
  /** The number of completion tokens in it. */
  readonly tokens: number;
  readonly headers?: Readonly<Record<string, string>>;
}

/** An unstreamed answer of either wire, with the fault applied. */
export function withBodyFault(body: JsonRecord, details: BodyDetails): Reply {
  const { fault, tokens, headers = {} } = details;
  const sent = bodyFaults[fault.mode]?.(body) ?? body;
  const text = JSON.stringify(sent);
  if (fault.mode === "bad-json") {
    return jsonReply(text.slice(0, Math.floor(text.length / 2)), { tokens, headers });
  }
  return jsonReply(text, { tokens, headers, hasUsage: usageKeys.some((key) => key in sent) });
}

/** The fields with token counts, of chat and embedding models. */
const usageKeys = ["usage", "inputTextTokenCount", "prompt_token_count", "generation_token_count"];

const bodyFaults: Readonly<Partial<Record<FaultMode, (body: JsonRecord) => JsonRecord>>> = {
  "ok-no-usage": (body) => without(body, usageKeys),
  "wrong-usage": withWrongUsage,
  "missing-finish-reason": (body) => {
    const rest = without(body, ["stopReason", "stop_reason"]);
    const choices = listOf(body["choices"]);
    const unfinished = choices.map((choice) => ({ ...recordOf(choice), finish_reason: null }));
    return choices.length === 0 ? rest : { ...rest, choices: unfinished };
  },
};

function without(body: JsonRecord, keys: readonly string[]): JsonRecord {
  return Object.fromEntries(Object.entries(body).filter(([key]) => !keys.includes(key)));
}

function withWrongUsage(body: JsonRecord): JsonRecord {
  const { usage } = body;
  const counted = usageKeys.filter((key) => typeof body[key] === "number");
  const counts = inflatedUsage(Object.fromEntries(counted.map((key) => [key, body[key]])));
  return { ...body, ...counts, ...(isRecord(usage) ? { usage: inflatedUsage(usage) } : {}) };
}
