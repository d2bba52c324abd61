import type { AnswerEvent } from "../../answer/answer-event.ts";
import type { Fault } from "../../faults/fault-mode.ts";
import { inflatedCount } from "../../faults/inflated-usage.ts";
import { collectAnswer } from "../../answer/collect-answer.ts";
import type { Reply } from "../../frame.ts";
import { numberOf, recordOf, stringOf, type JsonRecord } from "../../read-json.ts";
import { bodyReply } from "../reply/body-reply.ts";
import type { ConverseRequest } from "../request/converse-request.ts";
import { spoilEvents } from "../faults/event-faults.ts";
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
    ...nativeBody(form, text + refusal, finish.reason === "length" ? "length" : "stop"),
    ...bodyCounts(form, request.promptTokens, tokens),
    ...guardrailAction(request),
  };
  const headers = countHeaders(request.promptTokens, tokens, fault);
  return bodyReply(body, { fault, tokens, headers });
}

/** Answers InvokeModelWithResponseStream: chunks that each hold a part of the answer in base64. */
export function nativeStreamReply(
  { request, form }: ImportedRequest,
  answer: Iterable<AnswerEvent>,
  fault: Fault,
): Reply {
  const events = streamEvents(request, answer, () => 0);
  const chunks = chunksOf(spoilEvents(events, fault), form, request);
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
      yield chunkOf(nativeBody(form, stringOf(recordOf(body["delta"])["text"]), null), tokens);
    }
    if (type === "messageStop") stopReason = nativeReason(stringOf(body["stopReason"]));
    if (type === "metadata") metrics = metricsOf(recordOf(body["usage"]));
  }
  if (stopReason === undefined && metrics === undefined) return;
  const last = {
    ...nativeBody(form, "", stopReason ?? null),
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

function nativeBody(form: NativeForm, text: string, reason: string | null): JsonRecord {
  switch (form) {
    case "generation":
      return { generation: text, stop_reason: reason };
    case "outputs":
      return { outputs: [{ text, stop_reason: reason }] };
    case "choices":
      return { choices: [{ index: 0, text, finish_reason: reason, stop_reason: null }] };
  }
}

function bodyCounts(form: NativeForm, promptTokens: number, tokens: number): JsonRecord {
  switch (form) {
    case "generation":
      return { prompt_token_count: promptTokens, generation_token_count: tokens };
    case "outputs":
      return {};
    case "choices":
      return {
        usage: {
          prompt_tokens: promptTokens,
          completion_tokens: tokens,
          total_tokens: promptTokens + tokens,
        },
      };
  }
}

function nativeReason(stopReason: string): string {
  return stopReason === "max_tokens" ? "length" : "stop";
}

function guardrailAction({ guardrail }: ConverseRequest): JsonRecord {
  if (guardrail === undefined) return {};
  const action = guardrail.action === "none" ? "NONE" : "INTERVENED";
  return { "amazon-bedrock-guardrailAction": action };
}

function countHeaders(
  promptTokens: number,
  tokens: number,
  { mode }: Fault,
): Readonly<Record<string, string>> {
  if (mode === "ok-no-usage") return {};
  const tell = (count: number): string =>
    String(mode === "wrong-usage" ? inflatedCount(count) : count);
  return {
    "x-amzn-bedrock-input-token-count": tell(promptTokens),
    "x-amzn-bedrock-output-token-count": tell(tokens),
  };
}
