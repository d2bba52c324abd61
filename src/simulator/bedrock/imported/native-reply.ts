import type { AnswerEvent } from "../../answer/answer-event.ts";
import type { Fault } from "../../faults/fault-mode.ts";
import { collectAnswer } from "../../answer/collect-answer.ts";
import type { Reply } from "../../frame.ts";
import { numberOf, recordOf, stringOf, type JsonRecord } from "../../read-json.ts";
import { bodyReply, countHeaders } from "../reply/body-reply.ts";
import type { ConverseRequest } from "../request/converse-request.ts";
import { withEventFault } from "../faults/event-faults.ts";
import { streamEvents, type StreamEvent } from "../reply/stream-events.ts";
import { eventStreamReply, type FramedEvent } from "../reply/stream-reply.ts";
import type { ImportedRequest, NativeForm } from "./read-imported.ts";

/** Answers InvokeModel in the model's own form. */
export function nativeReply(
  { request, form }: ImportedRequest,
  answer: Iterable<AnswerEvent>,
  fault: Fault,
): Reply {
  const { text, refusal = "", finish } = collectAnswer(answer);
  const tokens = finish.completionTokens;
  const body = {
    ...forms[form].body(text + refusal, finish.reason === "length" ? "length" : "stop"),
    ...forms[form].counts(request.promptTokens, tokens),
    ...guardrailAction(request),
  };
  const headers = countHeaders({ input: request.promptTokens, output: tokens }, fault);
  return bodyReply(body, { fault, tokens, headers });
}

/** Answers InvokeModelWithResponseStream: chunks that each hold a part of the answer in base64. */
export function nativeStreamReply(
  { request, form }: ImportedRequest,
  answer: Iterable<AnswerEvent>,
  fault: Fault,
): Reply {
  const events = streamEvents(request, answer, () => 0);
  const chunks = chunksOf(withEventFault(events, fault), form, request);
  return eventStreamReply(chunks, request, fault);
}

/** The reason and the metrics share the last chunk. */
function* chunksOf(
  events: Iterable<StreamEvent>,
  form: NativeForm,
  request: ConverseRequest,
): Generator<FramedEvent, void, void> {
  let stopReason: string | undefined;
  let metrics: JsonRecord | undefined;
  for (const { type, body, tokens } of events) {
    if (type === "contentBlockDelta") {
      yield chunkOf(forms[form].body(stringOf(recordOf(body["delta"])["text"]), null), tokens);
    }
    if (type === "messageStop") stopReason = nativeReason(stringOf(body["stopReason"]));
    if (type === "metadata") metrics = metricsOf(recordOf(body["usage"]));
  }
  if (stopReason === undefined && metrics === undefined) return;
  const last = {
    ...forms[form].body("", stopReason ?? null),
    ...guardrailAction(request),
    ...(metrics === undefined ? {} : { "amazon-bedrock-invocationMetrics": metrics }),
  };
  yield { ...chunkOf(last, 0), hasUsage: metrics !== undefined };
}

function chunkOf(native: JsonRecord, tokens: number): FramedEvent {
  const bytes = Buffer.from(JSON.stringify(native)).toString("base64");
  return { type: "chunk", body: { bytes }, tokens };
}

function metricsOf(usage: JsonRecord): JsonRecord | undefined {
  const inputTokenCount = numberOf(usage["inputTokens"]);
  if (inputTokenCount === undefined) return undefined;
  const outputTokenCount = numberOf(usage["outputTokens"]);
  return { inputTokenCount, outputTokenCount, invocationLatency: 1, firstByteLatency: 1 };
}

interface FormWriter {
  body(text: string, reason: string | null): JsonRecord;
  counts(promptTokens: number, tokens: number): JsonRecord;
}

const forms: Readonly<Record<NativeForm, FormWriter>> = {
  generation: {
    body: (text, reason) => ({ generation: text, stop_reason: reason }),
    counts: (input, output) => ({ prompt_token_count: input, generation_token_count: output }),
  },
  outputs: {
    body: (text, reason) => ({ outputs: [{ text, stop_reason: reason }] }),
    counts: () => ({}),
  },
  choices: {
    body: (text, reason) => ({
      choices: [{ index: 0, text, finish_reason: reason, stop_reason: null }],
    }),
    counts: (input, output) => ({
      usage: { prompt_tokens: input, completion_tokens: output, total_tokens: input + output },
    }),
  },
};

function nativeReason(stopReason: string): string {
  return stopReason === "max_tokens" ? "length" : "stop";
}

function guardrailAction({ guardrail }: ConverseRequest): JsonRecord {
  if (guardrail === undefined) return {};
  const action = guardrail.action === "none" ? "NONE" : "INTERVENED";
  return { "amazon-bedrock-guardrailAction": action };
}
