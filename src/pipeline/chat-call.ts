import type { ChatRequest, ChatResult } from "../domain/chat.ts";
import { UpstreamFailure } from "../domain/upstream-failure.ts";
import type { ChatCodec } from "../upstreams/adapter.ts";
import type { AttemptContext } from "./attempt.ts";
import { CallImages } from "./call-images.ts";
import type { Call } from "./call.ts";
import type { Candidate } from "./routing/candidates.ts";
import { checkContextWindow, checkOutputCap, outputCap } from "./check-request.ts";
import {
  attemptChat,
  attemptChatStream,
  choiceCount,
  inputReadings,
  type ChatAttempt,
  type ChatTarget,
} from "./choices.ts";
import { ChoiceProgress } from "./choice-progress.ts";
import { countInput } from "./count-input.ts";
import { CallerSignal, type DrainableAnswer } from "./drain.ts";
import { measureChatInput, repeatedInput } from "./estimate.ts";
import { MeteredStream, type MeteredStreamOptions } from "./metered-stream.ts";
import type { Operation } from "./operation.ts";
import { runCall, type StartedCall } from "./run-call.ts";
import type { PipelineServices } from "./services.ts";

export interface ChatCall {
  readonly request: ChatRequest;
  /** Length of the JSON body; what the input estimate is made from. */
  readonly bodyBytes: number;
}

/** Runs a chat call to its whole answer. Throws `GatewayError`. */
export async function runChat(
  call: Call,
  chat: ChatCall,
  services: PipelineServices,
): Promise<StartedCall<ChatResult>> {
  using images = new CallImages(chat.request);
  const started = await runCall(call, wholeAnswer(chat, images), services);
  const { answer, meter } = started;
  for (const choice of answer.choices) {
    meter.delivering(lengthOf(choice));
  }
  meter.reported(answer.usage);
  meter.completed();
  return started;
}

/** Runs a chat call until its first event; the rest comes from the stream. Throws `GatewayError`. */
export async function openChatStream(
  call: Call,
  chat: ChatCall,
  services: PipelineServices,
): Promise<StartedCall<MeteredStream>> {
  using images = new CallImages(chat.request);
  const started = await runCall(call, streamedAnswer(chat, images), services);
  const { model } = started.admission;
  const answer = new MeteredStream({
    ...started.answer,
    meter: started.meter,
    model,
    clock: services.clock,
    choices: choiceCount(chat.request),
  });
  return { ...started, answer };
}

/** Characters of everything that the model wrote. */
function lengthOf(choice: ChatResult["choices"][number]): number {
  const { content, refusal, reasoning, functionCall, toolCalls } = choice;
  const texts = [content, refusal, reasoning, functionCall?.arguments];
  const calls = toolCalls.map(({ arguments: text }) => text);
  return [...texts, ...calls].reduce((sum, text) => sum + (text?.length ?? 0), 0);
}

function wholeAnswer(chat: ChatCall, images: CallImages): Operation<ChatResult> {
  const progress = new ChoiceProgress(choiceCount(chat.request));
  return {
    ...commonParts(chat, false),
    async attempt(candidate, context) {
      const target = { codec: chatCodec(candidate), candidate };
      const request = capped(await images.requestFor(target, context), context);
      const result = await attemptChat({ ...target, request, context }, progress);
      context.meter.answering();
      return result;
    },
  };
}

type OpenAnswer = Pick<MeteredStreamOptions, "open" | "drain">;

function streamedAnswer(chat: ChatCall, images: CallImages): Operation<OpenAnswer> {
  return {
    ...commonParts(chat, true),
    async attempt(candidate, context) {
      const target = { codec: chatCodec(candidate), candidate };
      const request = capped(await images.requestFor(target, context), context);
      const drain = drainOf(target, request, context);
      const answer = await openAnswer({ ...target, request, context }, drain);
      context.meter.answering();
      return answer;
    },
  };
}

/** With the cap of the plan, where the caller set none. */
function capped(request: ChatRequest, { outputCap }: AttemptContext): ChatRequest {
  return outputCap === undefined ? request : { ...request, max_completion_tokens: outputCap };
}

/** Choices that are asked for one after the other are not asked for once the caller has left. */
function drainOf(
  { codec, candidate }: ChatTarget,
  request: ChatRequest,
  { call }: AttemptContext,
): DrainableAnswer | undefined {
  const { drain } = candidate.upstream;
  const isOneRequest = choiceCount(request) === 1 || codec.takesChoiceCount;
  if (drain === undefined || !isOneRequest) return undefined;
  return { ...drain, caller: new CallerSignal(call.signal) };
}

async function openAnswer(
  attempt: ChatAttempt,
  drain: DrainableAnswer | undefined,
): Promise<OpenAnswer> {
  if (drain === undefined) return { open: await attemptChatStream(attempt), drain };
  const { context } = attempt;
  const call = { ...context.call, signal: drain.caller.signal };
  try {
    return { open: await attemptChatStream({ ...attempt, context: { ...context, call } }), drain };
  } catch (error) {
    drain.caller.release();
    throw error;
  }
}

type CommonParts = Omit<Operation<unknown>, "attempt">;

function commonParts({ request, bodyBytes }: ChatCall, isStreamed: boolean): CommonParts {
  const size = measureChatInput(request, bodyBytes);
  return {
    alias: request.model,
    kind: "chat",
    isStreamed,
    measure: (model, snapshot) => repeatedInput(size, inputReadings(request, model, snapshot)),
    async countInput(model, context) {
      const tokens = await countInput(request, model, context);
      const readings = inputReadings(request, model, context.call.snapshot);
      return tokens === undefined ? undefined : tokens * readings;
    },
    output: { cap: outputCap(request), choices: choiceCount(request) },
    check(model) {
      checkOutputCap(request, model);
      checkContextWindow(size, model);
    },
  };
}

function chatCodec({ upstream }: Candidate): ChatCodec {
  const { chat } = upstream.adapter;
  if (chat !== undefined) return chat;
  throw new UpstreamFailure({
    kind: "unknown-model",
    message: `upstream ${upstream.name} does not serve chat models`,
  });
}
