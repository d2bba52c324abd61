import type { AnswerBlock, ChatResult } from "../../domain/chat/answer.ts";
import {
  type Block,
  choiceCount,
  type Conversation,
  fieldOf,
  type Turn,
} from "../../domain/chat/conversation.ts";
import { UpstreamFailure } from "../../domain/errors/upstream-failure.ts";
import type { ChatCodec } from "../../upstreams/adapter.ts";
import type { Attempt } from "../attempts/attempt.ts";
import { CallImages } from "../images/call-images.ts";
import type { Call } from "../../snapshot/call.ts";
import type { Candidate, Destination } from "../../routing/candidates.ts";
import type { Model } from "../../domain/model.ts";
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
import { heldStateIn, type NamedState } from "../opaque/held-state.ts";
import { hasTags } from "../opaque/opaque-values.ts";
import { callerCodec, opaqueValuesOf } from "../opaque/caller-codec.ts";
import { beginHooks, changedByHooks } from "../hooks.ts";
import {
  CallerSignal,
  MeteredStream,
  type MeteredStreamOptions,
} from "../metering/metered-stream.ts";
import {
  type InputSize,
  measureChatInput,
  type OutputExpectation,
  repeatedInput,
} from "../../admission/estimate/estimate.ts";
import { ReadTexts } from "../../admission/estimate/fewest-tokens.ts";
import type { CallServices } from "../services.ts";
import type { CacheTime } from "../../domain/money/billed-classes.ts";
import type { Session } from "../../routing/affinity.ts";
import type { CallWork, CountContext } from "../attempts/call-candidates.ts";
import { cacheKeyOfSession, sessionOf } from "./session.ts";
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
  const { chatAnswerValues: mostValues } = call.snapshot.settings;
  const work = new ChatWork({ chat, images, mostValues, ask: attemptChat });
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
  const work = new ChatWork({ chat, images, mostValues: undefined, ask: openAnswer });
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

interface ChatWorkOptions<Answer> {
  readonly chat: ChatCall;
  readonly images: CallImages;
  /** `answers.chat_values` of a whole answer; undefined for a stream. */
  readonly mostValues: number | undefined;
  /** Sends a prepared request. `progress` is of a whole answer. */
  readonly ask: (asked: ChatAttempt, progress: ChoiceProgress) => Promise<Answer>;
}

/** A chat request and how it is sent to a target. */
class ChatWork<Answer> implements CallWork<Answer> {
  readonly kind = "chat";
  readonly alias: string;
  readonly dialect: Conversation["wire"];
  readonly inputs: number;
  readonly isStreamed: boolean;
  readonly #options: ChatWorkOptions<Answer>;
  readonly #request: Conversation;
  readonly #size: InputSize;
  readonly #held: readonly NamedState[];
  readonly #texts: ReadTexts;
  readonly #progress: ChoiceProgress;
  #session: Session | "none" | undefined;
  #counted: { readonly alias: string; readonly tokens: number } | undefined;

  constructor(options: ChatWorkOptions<Answer>) {
    const { request, bodyBytes } = options.chat;
    this.alias = request.model;
    this.dialect = request.wire;
    this.inputs = choiceCount(request);
    this.isStreamed = options.mostValues === undefined;
    this.#options = options;
    this.#request = request;
    this.#size = measureChatInput(request, bodyBytes);
    this.#held = heldStateIn(request);
    this.#texts = new ReadTexts(textsOf(request));
    this.#progress = new ChoiceProgress(this.inputs);
  }

  get named(): Conversation["options"] {
    return this.#request.options;
  }

  get serviceTier(): string | undefined {
    return this.#request.options.serviceTier;
  }

  cacheTime(): CacheTime {
    return cacheTimeOf(this.#request);
  }

  get isTagged(): boolean {
    return hasTags(this.#request);
  }

  continues(destination: Destination, call: Call, { tags }: Pick<CallServices, "tags">): boolean {
    return opaqueValuesOf(destination, call, tags).wroteNewest(this.#request);
  }

  session(
    model: Model,
    call: Call,
    { sessions }: Pick<CallServices, "sessions">,
  ): Session | undefined {
    if (this.#session === undefined) {
      const bytes = this.#size.textBytes;
      const isMarked = (): boolean => this.cacheTime() !== undefined;
      const prompt = { request: this.#request, bytes, isMarked };
      this.#session = sessionOf(prompt, model, { call, sessions }) ?? "none";
    }
    return this.#session === "none" ? undefined : this.#session;
  }

  measure(model: Model, call: Pick<Call, "snapshot" | "environment">): InputSize {
    return repeatedInput(this.#size, inputReadings(this.#request, model, call));
  }

  async countInput(model: Model, context: CountContext): Promise<number | undefined> {
    const tokens = await countInput(this.#request, model, context);
    if (tokens === undefined) return undefined;
    this.#counted = { alias: model.alias, tokens };
    return tokens * inputReadings(this.#request, model, context.call);
  }

  expectedOutput(model: Model): OutputExpectation {
    return expectedOutput(this.#request, model);
  }

  unanswered(): number {
    return this.isStreamed ? 1 : this.#progress.unanswered();
  }

  check(model: Model): void {
    const { mostValues } = this.#options;
    checkOutputCap(this.#request, model);
    if (mostValues !== undefined) checkAnswerSize(this.#request, mostValues);
    const { alias, contextWindow } = model;
    const length =
      this.#counted?.alias === alias
        ? { tokens: this.#counted.tokens, isCounted: true }
        : { tokens: this.#texts.sumFor(contextWindow), isCounted: false };
    checkContextWindow(length, model, fieldOf(this.#request, "turns"));
  }

  attempt(attempt: Attempt): Promise<Answer> {
    const { candidate, call, services } = attempt;
    const terms = { call, tags: services.tags, held: this.#held };
    const codec = callerCodec(chatCodec(candidate), candidate, terms);
    const preparing = this.#options.images.requestFor(codec, attempt);
    return preparing instanceof Promise
      ? preparing.then((prepared) => this.#ask(prepared, codec, attempt))
      : this.#ask(preparing, codec, attempt);
  }

  #ask(prepared: Conversation, codec: ChatCodec, attempt: Attempt): Promise<Answer> {
    const request = capped(withHiddenNames(prepared, attempt), attempt);
    return this.#options.ask({ request, codec, attempt }, this.#progress);
  }
}

/** The longest time for which a mark asks the provider to keep a part of the prompt. */
function cacheTimeOf({ turns, tools }: Conversation): CacheTime {
  let longest: CacheTime;
  const look = ({ cacheMark }: Pick<Turn, "cacheMark">): void => {
    if (cacheMark?.ttl === "1h") longest = "hour";
    else if (cacheMark !== undefined) longest ??= "minutes";
  };
  const lookIn = (block: Block): void => {
    look(block);
    if (block.type === "tool-result") for (const each of block.content) lookIn(each);
  };
  for (const tool of tools) look(tool);
  for (const turn of turns) {
    look(turn);
    for (const block of turn.blocks) lookIn(block);
  }
  return longest;
}

/** With the names that the upstream may see. */
function withHiddenNames(request: Conversation, attempt: Attempt): Conversation {
  const { call, candidate, services } = attempt;
  const { model, upstream } = candidate;
  const { sessions } = services;
  const { accountId } = call.caller.key;
  const options = services.names.hide(request.options, accountId, upstream.forwardEndUsers);
  const isKept = upstream.adapter.chat?.takesSessions !== true || Boolean(options.promptCacheKey);
  const promptCacheKey = isKept ? undefined : cacheKeyOfSession(request, model, { call, sessions });
  if (promptCacheKey !== undefined) return { ...request, options: { ...options, promptCacheKey } };
  return options === request.options ? request : { ...request, options };
}

/** Texts that the model certainly reads; names, tools and attachments come on top. */
function textsOf({ turns }: Conversation): readonly string[] {
  const texts: string[] = [];
  const add = (block: Block): void => {
    if (block.type === "text") texts.push(block.text);
    else if (block.type === "tool-result") block.content.forEach(add);
  };
  for (const { blocks } of turns) for (const block of blocks) add(block);
  return texts;
}

function chatCodec({ upstream }: Candidate): ChatCodec {
  const { chat } = upstream.adapter;
  if (chat !== undefined) return chat;
  throw new UpstreamFailure({
    kind: "unknown-model",
    message: `upstream ${upstream.name} does not serve chat models`,
  });
}
