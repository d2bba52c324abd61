import type { AnswerEvent, ContentEvent } from "../answer/answer-event.ts";
import type { FinishEvent } from "../answer/collect-answer.ts";
import { wireFinishReason, type AnswerIdentity, type Choices } from "./completion.ts";
import { logprobsOf } from "./logprobs.ts";
import type { ChatRequest } from "./read-chat-request.ts";
import { usageBody, type UsageCounts } from "./usage.ts";

/** One chunk of a stream before it is framed. */
export interface Chunk {
  readonly kind: "role" | "content" | "finish" | "usage";
  readonly body: Readonly<Record<string, unknown>>;
  /** The number of completion tokens in it. */
  readonly tokens: number;
}

/** The chunks of a stream in OpenAI's order; several choices take turns. */
export function* chunksOf(
  identity: AnswerIdentity,
  request: ChatRequest,
  choices: Choices,
): Generator<Chunk, void, void> {
  const envelope = chunkEnvelope(identity, request.includesUsage);
  const usage = { completionTokens: 0, reasoningTokens: 0 };
  let running = choices.map((events, index) => choiceChunks(events, index, request));
  while (running.length > 0) {
    const next = running.map((chunks) => ({ chunks, step: chunks.next() }));
    running = next.filter(({ step }) => step.done !== true).map(({ chunks }) => chunks);
    for (const { step } of next) {
      if (step.done === true) {
        usage.completionTokens += step.value.completionTokens;
        usage.reasoningTokens += step.value.reasoningTokens;
      } else {
        const { kind, choice, tokens } = step.value;
        yield { kind, tokens, body: envelope([choice]) };
      }
    }
  }
  if (!request.includesUsage) return;
  const counts: UsageCounts = { promptTokens: request.promptTokens, ...usage };
  yield { kind: "usage", tokens: 0, body: { ...envelope([]), usage: usageBody(counts) } };
}

type Envelope = (choices: readonly object[]) => Readonly<Record<string, unknown>>;

function chunkEnvelope({ id, created, model }: AnswerIdentity, includesUsage: boolean): Envelope {
  return (choices) => ({
    id,
    object: "chat.completion.chunk",
    created,
    model,
    service_tier: "default",
    system_fingerprint: "fp_simulator",
    choices,
    ...(includesUsage ? { usage: null } : {}),
  });
}

interface ChoiceChunk {
  readonly kind: "role" | "content" | "finish";
  readonly choice: object;
  readonly tokens: number;
}

/** Returns the event that ended the choice: it has the counts. */
function* choiceChunks(
  events: Iterable<AnswerEvent>,
  index: number,
  request: ChatRequest,
): Generator<ChoiceChunk, FinishEvent, void> {
  let isBegun = false;
  /** Tokens of thoughts that the caller does not see, counted with the next chunk. */
  let hiddenTokens = 0;
  for (const event of events) {
    if (event.kind === "reasoning" && !request.showsReasoning) {
      hiddenTokens += event.tokens;
      continue;
    }
    if (!isBegun) {
      isBegun = true;
      const isCallFirst = event.kind === "call" && event.count === 1;
      const tokens = hiddenTokens + (isCallFirst ? event.tokens : 0);
      hiddenTokens = 0;
      const logprobs = request.topLogprobs === undefined ? null : { content: [], refusal: null };
      const choice = { index, delta: roleDelta(event, request), logprobs, finish_reason: null };
      yield { kind: "role", choice, tokens };
      if (isCallFirst) continue;
    }
    if (event.kind === "finish") {
      const reason = wireFinishReason(event.reason, request.isLegacyCall);
      const choice = { index, delta: {}, logprobs: null, finish_reason: reason };
      yield { kind: "finish", choice, tokens: 0 };
      return event;
    }
    const delta = contentDelta(event, request.isLegacyCall);
    const choice = { index, delta, logprobs: eventLogprobs(event, request), finish_reason: null };
    yield { kind: "content", choice, tokens: event.tokens };
  }
  return { kind: "finish", reason: "stop", completionTokens: 0, reasoningTokens: 0 };
}

/** The first delta of a choice: the role, and what OpenAI sends along with it. */
function roleDelta(event: AnswerEvent, request: ChatRequest): object {
  if (event.kind === "refusal") return { role: "assistant", content: null, refusal: "" };
  if (event.kind === "call") {
    if (event.count > 1) return { role: "assistant", content: null };
    const header = contentDelta(event, request.isLegacyCall);
    return { role: "assistant", content: null, ...header, refusal: null };
  }
  return { role: "assistant", content: "", refusal: null };
}

function contentDelta(event: ContentEvent, isLegacyCall: boolean): object {
  switch (event.kind) {
    case "reasoning":
      return { reasoning_content: event.piece };
    case "text":
      return { content: event.piece };
    case "refusal":
      return { refusal: event.piece };
    case "call": {
      const { index, id, name } = event;
      if (isLegacyCall) return { function_call: { name, arguments: "" } };
      return event.tool === "function"
        ? { tool_calls: [{ index, id, type: "function", function: { name, arguments: "" } }] }
        : { tool_calls: [{ index, id, type: "custom", custom: { name, input: "" } }] };
    }
    case "input": {
      const { index, piece } = event;
      if (isLegacyCall) return { function_call: { arguments: piece } };
      return event.tool === "function"
        ? { tool_calls: [{ index, function: { arguments: piece } }] }
        : { tool_calls: [{ index, custom: { input: piece } }] };
    }
  }
}

function eventLogprobs(event: ContentEvent, request: ChatRequest): object | null {
  if (request.topLogprobs === undefined) return null;
  if (event.kind !== "text" && event.kind !== "refusal") return null;
  return logprobsOf([event.piece], request.topLogprobs, event.kind === "refusal");
}
