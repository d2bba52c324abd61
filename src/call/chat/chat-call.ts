import type { AnswerBlock, ChatResult } from "../../domain/chat/answer.ts";
import {
  type Block,
  choiceCount,
  type Conversation,
  fieldOf,
} from "../../domain/chat/conversation.ts";
import { UpstreamFailure } from "../../domain/errors/upstream-failure.ts";
import type { ChatCodec } from "../../upstreams/adapter.ts";
import type { Attempt } from "../attempts/attempt.ts";
import { CallImages } from "../images/call-images.ts";
import type { Call } from "../../snapshot/call.ts";
import type { Candidate } from "../../routing/candidates.ts";
import {
  checkAnswerSize,
  checkContextWindow,
  checkOutputCap,
  expectedOutput,
} from "../check-request.ts";
import {
  attemptChat,
  attemptChatStream,
  type ChatAttempt,
  ChoiceProgress,
  inputReadings,
} from "./choices.ts";
import { countInput } from "../count-input.ts";
import { heldStateIn } from "../opaque/held-state.ts";
import { hasTags } from "../opaque/opaque-values.ts";
import { callerCodec, opaqueValuesOf } from "../opaque/caller-codec.ts";
import { beginHooks, changedByHooks } from "../hooks.ts";
import {
  CallerSignal,
  MeteredStream,
  type MeteredStreamOptions,
} from "../metering/metered-stream.ts";
import { measureChatInput, repeatedInput } from "../../admission/estimate/estimate.ts";
import { ReadTexts } from "../../admission/estimate/fewest-tokens.ts";
import type { CallServices } from "../services.ts";
import type { CallWork } from "../attempts/call-candidates.ts";
import { completeWhole, runCall, type StartedCall } from "../run-call.ts";

export interface ChatCall {
  readonly request: Conversation;
  /** Length of the JSON body, for the input estimate. */
  readonly bodyBytes: number;
}

/** Runs a chat call to its complete answer. Throws `GatewayError`. */
export async function runChat(
  arriving: Call,
  read: ChatCall,
  services: CallServices,
): Promise<StartedCall<ChatResult>> {
  const call = beginHooks(arriving, services.onHookFailed);
  const chat = call.hooks === undefined ? read : await throughHooks(call, read, services);
  using images = new CallImages(chat.request);
  const progress = new ChoiceProgress(choiceCount(chat.request));
  const ask = (attempt: ChatAttempt): Promise<ChatResult> => attemptChat(attempt, progress);
  const { chatAnswerValues: mostValues } = call.snapshot.settings;
  const work = workOf({ chat, images, whole: { progress, mostValues } }, ask);
  const started = await runCall(call, work, services);
  const { answer, meter } = started;
  for (const choice of answer.choices) {
    meter.delivering(choice.blocks.reduce((sum, block) => sum + lengthOf(block), 0));
  }
  meter.reported(answer.usage);
  return await completeWhole(
    started,
    async (whole, hooks) => (await hooks.answering({ kind: "chat", answer: whole })).answer,
  );
}

/** Runs a chat call until its first event; the stream brings the rest. Throws `GatewayError`. */
export async function openChatStream(
  arriving: Call,
  read: ChatCall,
  services: CallServices,
): Promise<StartedCall<MeteredStream>> {
  const call = beginHooks(arriving, services.onHookFailed);
  const chat = call.hooks === undefined ? read : await throughHooks(call, read, services);
  using images = new CallImages(chat.request);
  const work = workOf({ chat, images, whole: undefined }, openAnswer);
  const started = await runCall(call, work, services);
  const { model } = started.admission;
  const answer = new MeteredStream({
    ...started.answer,
    meter: started.meter,
    model,
    clock: services.clock,
    ending: services.running.ending,
    usageTimeoutMs: call.snapshot.settings.usageTimeoutMs,
    choices: choiceCount(chat.request),
    hooks: call.hooks,
  });
  return { ...started, answer };
}

/** The request as the hooks of the call returned it. */
async function throughHooks(
  call: Call,
  read: ChatCall,
  { running }: CallServices,
): Promise<ChatCall> {
  const asked = { kind: "chat", request: read.request } as const;
  return { ...read, ...(await changedByHooks(call, asked, running)) };
}

/** Number of characters the model generated. */
function lengthOf(block: AnswerBlock): number {
  return block.type === "tool-call" ? block.arguments.length : block.text.length;
}

type OpenAnswer = Pick<MeteredStreamOptions, "open" | "caller" | "drain">;

/**
 * Applies the plan's cap if the caller set none, and lowers a cap that only the wire demanded to the
 * longest answer of the model.
 */
function capped(request: Conversation, attempt: Attempt): Conversation {
  const { outputCap: ownCap, candidate } = attempt;
  if (ownCap !== undefined) {
    const caps = request.caps.filter(({ tokens }) => tokens <= ownCap);
    return { ...request, caps, ownCap };
  }
  const { maxOutputTokens: most = Infinity } = candidate.model;
  if (!request.caps.some((cap) => cap.isDemanded === true && cap.tokens > most)) return request;
  attempt.adjust(new Map(request.caps.map(({ field }) => [field, most])));
  return { ...request, caps: request.caps.map((cap) => ({ ...cap, tokens: most })) };
}

/** Opens a streamed answer, which may be drained after its caller has left. */
async function openAnswer(asked: ChatAttempt): Promise<OpenAnswer> {
  const { request, codec, attempt } = asked;
  const caller = new CallerSignal(attempt.signal);
  // A drain must not send the requests of further choices.
  const isOneRequest = choiceCount(request) === 1 || codec.takesChoiceCount;
  const { capacity } = attempt.services;
  const drain = isOneRequest ? capacity.draining(attempt.candidate.upstream) : undefined;
  try {
    const open = await attemptChatStream(asked, caller.signal);
    return { open, caller, drain };
  } catch (error) {
    caller.release();
    throw error;
  }
}

interface ChatWork {
  readonly chat: ChatCall;
  readonly images: CallImages;
  /** Undefined for a stream. */
  readonly whole: WholeAnswer | undefined;
}

interface WholeAnswer {
  readonly progress: ChoiceProgress;
  /** `answers.chat_values` */
  readonly mostValues: number;
}

/** `ask` sends the request to a target. */
function workOf<Answer>(
  { chat: { request, bodyBytes }, images, whole }: ChatWork,
  ask: (attempt: ChatAttempt) => Promise<Answer>,
): CallWork<Answer> {
  const size = measureChatInput(request, bodyBytes);
  const held = heldStateIn(request);
  const texts = new ReadTexts(request.turns.flatMap(({ blocks }) => blocks.flatMap(textsIn)));
  let counted: { readonly alias: string; readonly tokens: number } | undefined;
  return {
    alias: request.model,
    kind: "chat",
    dialect: request.wire,
    ...(hasTags(request) && {
      continues: (destination, call, { tags }) =>
        opaqueValuesOf(destination, call, tags).wroteNewest(request),
    }),
    isStreamed: whole === undefined,
    measure: (model, call) => repeatedInput(size, inputReadings(request, model, call)),
    async countInput(model, context) {
      const tokens = await countInput(request, model, context);
      if (tokens === undefined) return undefined;
      counted = { alias: model.alias, tokens };
      return tokens * inputReadings(request, model, context.call);
    },
    expectedOutput: (model) => expectedOutput(request, model),
    inputs: choiceCount(request),
    unanswered: () => whole?.progress.unanswered() ?? 1,
    check(model) {
      checkOutputCap(request, model);
      if (whole !== undefined) checkAnswerSize(request, whole.mostValues);
      const { alias, contextWindow } = model;
      const length =
        counted?.alias === alias
          ? { tokens: counted.tokens, isCounted: true }
          : { tokens: texts.sumFor(contextWindow), isCounted: false };
      checkContextWindow(length, model, fieldOf(request, "turns"));
    },
    async attempt(attempt) {
      const { candidate, call, services } = attempt;
      const codec = callerCodec(chatCodec(candidate), candidate, {
        call,
        tags: services.tags,
        held,
      });
      const preparing = images.requestFor(codec, attempt);
      const prepared = preparing instanceof Promise ? await preparing : preparing;
      const named = withHiddenNames(prepared, attempt);
      const answer = await ask({ request: capped(named, attempt), codec, attempt });
      attempt.meter.answering();
      return answer;
    },
  };
}

function withHiddenNames(request: Conversation, attempt: Attempt): Conversation {
  const { call, candidate, services } = attempt;
  const { accountId } = call.caller.key;
  const options = services.names.hide(request.options, accountId, candidate.upstream.endUsers);
  return options === request.options ? request : { ...request, options };
}

/** Text that the model certainly reads; names, tools and attachments come on top. */
function textsIn(block: Block): readonly string[] {
  if (block.type === "tool-result") return block.content.flatMap(textsIn);
  return block.type === "text" ? [block.text] : [];
}

function chatCodec({ upstream }: Candidate): ChatCodec {
  const { chat } = upstream.adapter;
  if (chat !== undefined) return chat;
  throw new UpstreamFailure({
    kind: "unknown-model",
    message: `upstream ${upstream.name} does not serve chat models`,
  });
}
