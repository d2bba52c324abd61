import type { ChatEvent, ChatRequest, ChatResult } from "../domain/chat.ts";
import { UpstreamFailure } from "../domain/upstream-failure.ts";
import type { ChatCodec } from "../upstreams/adapter.ts";
import { CallImages } from "./call-images.ts";
import type { Call } from "./call.ts";
import type { Candidate } from "./candidates.ts";
import { checkContextWindow, checkOutputCap, outputCap } from "./check-request.ts";
import { attemptChat, attemptChatStream, choiceCount, inputReadings } from "./choices.ts";
import { ChoiceProgress } from "./choice-progress.ts";
import { countInput } from "./count-input.ts";
import { measureChatInput, repeatedInput } from "./estimate.ts";
import type { OpenStream } from "./event-batches.ts";
import { MeteredStream } from "./metered-stream.ts";
import { runCall, type Operation, type StartedCall } from "./run-call.ts";
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
  const answer = new MeteredStream({ open: started.answer, meter: started.meter, model });
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
      const request = await images.requestFor(target, context);
      const result = await attemptChat({ ...target, request, context }, progress);
      context.meter.answering();
      return result;
    },
  };
}

function streamedAnswer(chat: ChatCall, images: CallImages): Operation<OpenStream<ChatEvent>> {
  return {
    ...commonParts(chat, true),
    async attempt(candidate, context) {
      const target = { codec: chatCodec(candidate), candidate };
      const request = await images.requestFor(target, context);
      const open = await attemptChatStream({ ...target, request, context });
      context.meter.answering();
      return open;
    },
  };
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
