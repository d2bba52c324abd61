import { writeAnswer } from "../answer/write-answer.ts";
import type { Fault, FaultMode } from "../faults/fault-modes.ts";
import { inflatedUsage, outsizedAnswer } from "../faults/bodies.ts";
import { type Frame, framesBeforeMiddle, type Reply } from "../reply.ts";
import { bodyReply, errorText, serverError } from "./errors.ts";
import type { ChatRequest } from "./request.ts";
import { asWritten, beforeAnswer, type Chunk, streamOfServer } from "./servers.ts";
import type { ServerBehaviour } from "./profiles.ts";
import {
  type AnswerEvent,
  collectAnswer,
  type CollectedCall,
  type ContentEvent,
  type FinishEvent,
  type FinishReason,
  type WholeAnswer,
} from "../answer/answer.ts";
import { isRecord, type JsonRecord, listOf, recordOf } from "../json.ts";
import { hashText } from "../answer/random.ts";

/** Answers a chat request, plain or streamed. */
export function chatReply(
  request: ChatRequest,
  identity: AnswerIdentity,
  { fault, server }: { readonly fault: Fault; readonly server: ServerBehaviour },
): Reply {
  const choices = Array.from(
    { length: request.choiceCount },
    (_, choice) => outsizedAnswer(fault) ?? writeAnswer(request.prompt, choice),
  );
  if (!request.isStreamed) {
    const { body, usage } = completionBody(identity, request, choices);
    return bodyReply(asWritten(body, server), usage.completionTokens, fault);
  }
  const chunks = streamOfServer(chunksOf(identity, request, choices), server);
  return {
    status: 200,
    headers: {
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-cache",
      "x-accel-buffering": "no",
    },
    steps: beforeAnswer(streamFrames(chunks, fault), server),
    isStreamed: true,
  };
}

/** The fields that all parts of one answer share. */
interface AnswerIdentity {
  readonly id: string;
  /** Unix time in seconds. */
  readonly created: number;
  readonly model: string;
}

type Choices = readonly Iterable<AnswerEvent>[];

/** The body of an answer that is not streamed. */
function completionBody(
  identity: AnswerIdentity,
  request: ChatRequest,
  choices: Choices,
): { readonly body: JsonRecord; readonly usage: Spent } {
  const collected = choices.map(collectAnswer);
  const usage: Spent = {
    completionTokens: sum(collected.map((choice) => choice.finish.completionTokens)),
    reasoningTokens: sum(collected.map((choice) => choice.finish.reasoningTokens)),
  };
  const { id, created, model } = identity;
  const body = {
    id,
    object: "chat.completion",
    created,
    model,
    choices: collected.map((choice, index) =>
      sentChoice(choiceBody(choice, index, request), request),
    ),
    usage: usageBody(request, usage),
    service_tier: "default",
    system_fingerprint: "fp_simulator",
  };
  return { body, usage };
}

/** For deprecated `functions` the call is a field of its own. */
function sentChoice(choice: object, { isLegacyCall }: ChatRequest): object {
  if (!isLegacyCall) return choice;
  const { delta, message, finish_reason: reason, ...rest } = recordOf(choice);
  const { tool_calls: calls, ...said } = recordOf(message ?? delta);
  const called = recordOf(listOf(calls)[0])["function"];
  const part = called === undefined ? said : { ...said, function_call: called };
  const finish_reason = reason === "tool_calls" ? "function_call" : reason;
  return { ...rest, [message === undefined ? "delta" : "message"]: part, finish_reason };
}

function wireFinishReason(reason: FinishReason): string {
  return reason === "tool-calls" ? "tool_calls" : reason;
}

function choiceBody(choice: WholeAnswer, index: number, request: ChatRequest): object {
  const { calls, refusal, reasoning, pieces } = choice;
  const { topLogprobs } = request;
  const isTextless = calls.length > 0 || refusal !== undefined;
  const message = {
    role: "assistant",
    content: isTextless ? null : choice.text,
    ...(request.showsReasoning ? { reasoning_content: reasoning } : {}),
    refusal: refusal ?? null,
    annotations: [],
    ...(calls.length === 0 ? {} : { tool_calls: calls.map(callBody) }),
  };
  return {
    index,
    message,
    logprobs:
      topLogprobs === undefined ? null : logprobsOf(pieces, topLogprobs, refusal !== undefined),
    finish_reason: wireFinishReason(choice.finish.reason),
  };
}

function callBody({ id, name, tool, input }: CollectedCall): object {
  return tool === "function"
    ? { id, type: "function", function: { name, arguments: input } }
    : { id, type: "custom", custom: { name, input } };
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

/** The chunks of a stream in OpenAI's order; several choices take turns. */
function* chunksOf(
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
        yield { kind, tokens, body: envelope([sentChoice(choice, request)]) };
      }
    }
  }
  if (!request.includesUsage) return;
  yield { kind: "usage", tokens: 0, body: { ...envelope([]), usage: usageBody(request, usage) } };
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
      const choice = { index, delta: roleDelta(event), logprobs, finish_reason: null };
      yield { kind: "role", choice, tokens };
      if (isCallFirst) continue;
    }
    if (event.kind === "finish") {
      const reason = wireFinishReason(event.reason);
      const choice = { index, delta: {}, logprobs: null, finish_reason: reason };
      yield { kind: "finish", choice, tokens: 0 };
      return event;
    }
    const delta = contentDelta(event);
    const choice = { index, delta, logprobs: eventLogprobs(event, request), finish_reason: null };
    yield { kind: "content", choice, tokens: event.tokens };
  }
  return { kind: "finish", reason: "stop", completionTokens: 0, reasoningTokens: 0 };
}

/** The first delta of a choice: the role, and what OpenAI sends along with it. */
function roleDelta(event: AnswerEvent): object {
  if (event.kind === "refusal") return { role: "assistant", content: null, refusal: "" };
  if (event.kind === "call") {
    if (event.count > 1) return { role: "assistant", content: null };
    const header = contentDelta(event);
    return { role: "assistant", content: null, ...header, refusal: null };
  }
  return { role: "assistant", content: "", refusal: null };
}

function contentDelta(event: ContentEvent): object {
  switch (event.kind) {
    case "reasoning":
      return { reasoning_content: event.piece };
    case "text":
      return { content: event.piece };
    case "refusal":
      return { refusal: event.piece };
    case "call": {
      const { index, id, name } = event;
      return event.tool === "function"
        ? { tool_calls: [{ index, id, type: "function", function: { name, arguments: "" } }] }
        : { tool_calls: [{ index, id, type: "custom", custom: { name, input: "" } }] };
    }
    case "input": {
      const { index, piece } = event;
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

/** Chunks as server-sent events, with the fault applied. */
function streamFrames(chunks: Iterable<Chunk>, { mode }: Fault): Iterable<Frame> {
  const replace = chunkFaults[mode];
  const sent = replace === undefined ? chunks : Iterator.from(chunks).flatMap(replace);
  const frames = plainFrames(sent, mode);
  return frameFaults[mode]?.(frames) ?? frames;
}

/** Returns what the caller gets in place of a chunk. */
type ChunkFault = (chunk: Chunk) => readonly Chunk[];

const chunkFaults: Readonly<Partial<Record<FaultMode, ChunkFault>>> = {
  "ok-no-usage": (chunk) => (chunk.kind === "usage" ? [] : [chunk]),
  "missing-finish-reason": (chunk) => (chunk.kind === "finish" ? [] : [chunk]),
  "usage-twice": (chunk) => (chunk.kind === "usage" ? [chunk, chunk] : [chunk]),
  "wrong-usage": (chunk) => [withWrongUsage(chunk)],
  "role-every-chunk": (chunk) => [withRole(chunk)],
};

type Frames = Generator<Frame, void, void>;

const frameFaults: Readonly<Partial<Record<FaultMode, (frames: Frames) => Iterable<Frame>>>> = {
  "bad-json": (frames) =>
    frames.map((frame, index) => {
      const text = String(frame.data);
      const isBroken = index === framesBeforeMiddle - 1;
      return isBroken ? { ...frame, data: `${text.slice(0, text.length / 2)}\n\n` } : frame;
    }),
  "error-event-mid-stream": endInError,
  "crlf-framing": (frames) =>
    frames.map((frame) => ({ ...frame, data: String(frame.data).replaceAll("\n", "\r\n") })),
  comments: (frames) => frames.flatMap((frame) => [{ data: ": still here\n\n", tokens: 0 }, frame]),
};

function* plainFrames(chunks: Iterable<Chunk>, mode: FaultMode): Frames {
  for (const { kind, body, tokens } of chunks) {
    yield { data: `data: ${JSON.stringify(body)}\n\n`, tokens, hasUsage: kind === "usage" };
  }
  if (mode !== "no-done") yield { data: "data: [DONE]\n\n", tokens: 0 };
}

function withWrongUsage(chunk: Chunk): Chunk {
  const usage = chunk.body["usage"];
  if (!isRecord(usage)) return chunk;
  return { ...chunk, body: { ...chunk.body, usage: inflatedUsage(usage) } };
}

function withRole(chunk: Chunk): Chunk {
  const choices = listOf(chunk.body["choices"]).map((choice): JsonRecord => {
    const { delta, ...rest } = recordOf(choice);
    return { ...rest, delta: { role: "assistant", ...recordOf(delta) } };
  });
  return { ...chunk, body: { ...chunk.body, choices } };
}

function* endInError(frames: Frames): Iterable<Frame> {
  yield* frames.take(framesBeforeMiddle);
  yield { data: `data: ${errorText(serverError(500).body)}\n\n`, tokens: 0 };
}

interface TokenLogprob {
  readonly token: string;
  readonly logprob: number;
  readonly bytes: readonly number[];
  readonly top_logprobs: readonly Omit<TokenLogprob, "top_logprobs">[];
}

/** `alternatives` is the number of likely tokens at each place. */
function logprobsOf(tokens: readonly string[], alternatives: number, isRefusal: boolean): object {
  const list = tokens.map((token) => tokenLogprob(token, alternatives));
  return isRefusal ? { content: null, refusal: list } : { content: list, refusal: null };
}

/** Made-up log probabilities that look real: the token itself is the most likely. */
function tokenLogprob(token: string, alternatives: number): TokenLogprob {
  const logprob = -(hashText(token) % 1000) / 1500;
  const named = Array.from({ length: alternatives }, (_, rank) =>
    rank === 0 ? token : ` ${rank}`,
  );
  return {
    ...plain(token, logprob),
    top_logprobs: named.map((word, rank) => plain(word, logprob - rank * 1.375)),
  };
}

function plain(token: string, logprob: number): Omit<TokenLogprob, "top_logprobs"> {
  return { token, logprob, bytes: [...Buffer.from(token)] };
}

/** Summed over the choices of a call. */
type Spent = Pick<FinishEvent, "completionTokens" | "reasoningTokens">;

function usageBody({ promptTokens, cachedTokens }: ChatRequest, spent: Spent) {
  return {
    prompt_tokens: promptTokens,
    completion_tokens: spent.completionTokens,
    total_tokens: promptTokens + spent.completionTokens,
    prompt_tokens_details: { cached_tokens: cachedTokens, audio_tokens: 0 },
    completion_tokens_details: {
      reasoning_tokens: spent.reasoningTokens,
      audio_tokens: 0,
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
    },
  };
}
