import type { Fault, FaultMode } from "../faults/fault-mode.ts";
import { inflatedUsage } from "../faults/inflated-usage.ts";
import { jsonReply, type Reply } from "../frame.ts";
import { isRecord, listOf, recordOf, type JsonRecord } from "../read-json.ts";
import { errorReply, serverError } from "./refusal-faults.ts";

/** A JSON answer as text, spoiled as the fault says. */
export function bodyReply(body: object, tokens: number, fault: Fault): Reply {
  const record: JsonRecord = { ...body };
  const spoil = bodyFaults[fault.mode] ?? usual;
  return spoil(record, tokens);
}

type BodyFault = (body: JsonRecord, tokens: number) => Reply;

const bodyFaults: Readonly<Partial<Record<FaultMode, BodyFault>>> = {
  "ok-no-usage": (body, tokens) => {
    const entries = Object.entries(body).filter(([key]) => key !== "usage");
    return usual(Object.fromEntries(entries), tokens);
  },
  "wrong-usage": (body, tokens) =>
    usual({ ...body, usage: inflatedUsage(recordOf(body["usage"])) }, tokens),
  "missing-finish-reason": (body, tokens) => {
    const choices = listOf(body["choices"]);
    const unfinished = choices.map((choice) => ({ ...recordOf(choice), finish_reason: null }));
    return usual(choices.length === 0 ? body : { ...body, choices: unfinished }, tokens);
  },
  "bad-json": (body, tokens) => {
    const text = JSON.stringify(body);
    return jsonReply(text.slice(0, Math.floor(text.length / 2)), { tokens });
  },
  "error-event-mid-stream": () => errorReply(serverError(500)),
};

function usual(body: JsonRecord, tokens: number): Reply {
  return jsonReply(JSON.stringify(body), { tokens, hasUsage: isRecord(body["usage"]) });
}
