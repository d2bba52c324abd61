import type {
  AnswerBlock,
  AnswerReasoning,
  AnswerToolCall,
  ChatChoice,
  ChatEvent,
  ChatResult,
  ExtraFields,
  TokenDetails,
  TokenLogprobs,
  ToolCallExtra,
} from "../../domain/chat/answer.ts";
import type { TokenUsage } from "../../domain/usage/usage.ts";
import type { DecoderLimits, StreamDecoder } from "../adapter.ts";
import { isObject } from "../../domain/json-fields.ts";
import { answerTooLarge, brokenAnswer } from "../../domain/errors/upstream-failure.ts";

/** Joins the events of an answer, which must be whole, into a result. */
export function collectAnswer(events: readonly ChatEvent[]): ChatResult {
  const answer = new CollectedAnswer();
  for (const event of events) answer.add(event);
  return answer.result();
}

/** The same for a stream that came in place of a whole answer. Throws its failure. */
export function collectStream(
  newDecoder: (limits: DecoderLimits) => StreamDecoder<ChatEvent>,
  body: Uint8Array,
): ChatResult {
  const limits = { malformedEvents: 0, answerLimitBytes: body.length, answerValues: 0 };
  const decoder = newDecoder(limits);
  const events = [...decoder.push(body), ...decoder.end()];
  if (decoder.failure !== undefined) throw decoder.failure;
  return collectAnswer(events);
}

class CollectedAnswer {
  readonly #choices = new Map<number, CollectedChoice>();
  #usage: TokenUsage | undefined;
  #details: TokenDetails | undefined;
  #systemFingerprint: string | undefined;
  #serviceTier: string | undefined;
  #extra: Fields | undefined;

  add(event: ChatEvent): void {
    switch (event.type) {
      case "answer-start":
        this.#systemFingerprint = event.systemFingerprint;
        this.#serviceTier = event.serviceTier;
        return;
      case "usage-report":
        this.#usage = event.usage;
        this.#details = event.details;
        this.#extra = replaced(this.#extra, event.extra);
        return;
      case "usage-start":
        this.#usage ??= event.usage;
        return;
      case "text-delta":
      case "choice-finish":
        if (event.extra !== undefined) this.#extra = replaced(this.#extra, event.extra.answer);
        return this.#choice(event.choice).add(event);
      default:
        return this.#choice(event.choice).add(event);
    }
  }

  result(): ChatResult {
    const choices = Array.from(this.#choices.values(), (choice) => choice.result());
    if (choices.length > 1) choices.sort((one, other) => one.index - other.index);
    return {
      choices,
      usage: this.#usage,
      tokenDetails: this.#details,
      systemFingerprint: this.#systemFingerprint,
      serviceTier: this.#serviceTier,
      extra: this.#extra,
    };
  }

  #choice(index: number): CollectedChoice {
    const known = this.#choices.get(index);
    if (known !== undefined) return known;
    const choice = new CollectedChoice(index);
    this.#choices.set(index, choice);
    return choice;
  }
}

type ChoiceEvent = Exclude<ChatEvent, { type: "answer-start" | "usage-start" | "usage-report" }>;

interface CollectedCall extends AnswerToolCall {
  arguments: string;
  extra?: { call?: Fields | undefined; body?: Fields | undefined };
}

/** A block that its deltas grow. */
interface CollectedText {
  readonly type: "text" | "refusal" | "reasoning";
  text: string;
  citations?: ExtraFields[];
}

class CollectedChoice {
  readonly #index: number;
  readonly #blocks: AnswerBlock[] = [];
  /** The latest block, if it is a text that may go on. */
  #running: CollectedText | undefined;
  readonly #calls: CollectedCall[] = [];
  #functionCall: CollectedCall | undefined;
  #logprobs: unknown[] | undefined;
  #refusalLogprobs: unknown[] | undefined;
  #finish: ChoiceFinish = { finishReason: "stop" };
  #choiceExtra: Fields | undefined;
  #messageExtra: Fields | undefined;

  constructor(index: number) {
    this.#index = index;
  }

  add(event: ChoiceEvent): void {
    switch (event.type) {
      case "text-delta":
        if (event.isStart === true) this.#running = undefined;
        if (event.text !== "") this.#append("text", event.text);
        this.#logprobs = joined(this.#logprobs, event.logprobs);
        if (event.extra === undefined) return;
        this.#choiceExtra = replaced(this.#choiceExtra, event.extra.choice);
        this.#messageExtra = accumulated(this.#messageExtra, event.extra.message);
        if (event.extra.citation !== undefined && this.#running !== undefined) {
          (this.#running.citations ??= []).push(event.extra.citation);
        }
        return;
      case "refusal-delta":
        this.#append("refusal", event.text);
        this.#refusalLogprobs = joined(this.#refusalLogprobs, event.logprobs);
        return;
      case "reasoning-delta":
        return this.#append("reasoning", event.text);
      case "reasoning-block":
        return this.#endThought(event.content);
      case "tool-call-start": {
        const call = this.#begin(event.id, event);
        this.#calls.push(call);
        return addExtra(call, event.extra);
      }
      case "tool-call-delta": {
        const call = this.#calls[event.call];
        if (call === undefined) return;
        call.arguments += event.arguments;
        return addExtra(call, event.extra);
      }
      case "function-call-start":
        this.#functionCall = this.#begin(undefined, { kind: "function", name: event.name });
        return;
      case "function-call-delta":
        if (this.#functionCall !== undefined) this.#functionCall.arguments += event.arguments;
        return;
      case "choice-finish":
        this.#finish = event;
        this.#choiceExtra = replaced(this.#choiceExtra, event.extra?.choice);
        return;
    }
  }

  #append(type: CollectedText["type"], text: string): void {
    if (this.#running?.type === type) {
      this.#running.text += text;
      return;
    }
    this.#running = { type, text };
    this.#blocks.push(this.#running);
  }

  /** The whole thought takes the place of its deltas; a redacted one has none. */
  #endThought(content: AnswerReasoning): void {
    const hasDeltas = content.isRedacted !== true && this.#running?.type === "reasoning";
    if (hasDeltas) this.#blocks.pop();
    this.#blocks.push(content);
    this.#running = undefined;
  }

  #begin(
    id: string | undefined,
    { kind, name }: Pick<AnswerToolCall, "kind" | "name">,
  ): CollectedCall {
    const call: CollectedCall = { type: "tool-call", id, kind, name, arguments: "" };
    this.#blocks.push(call);
    this.#running = undefined;
    return call;
  }

  result(): ChatChoice {
    const choice = this.#choiceExtra;
    const message = this.#messageExtra;
    const { finishReason, stopSequence, stopDetails, guardrail } = this.#finish;
    return {
      index: this.#index,
      blocks: this.#blocks,
      finishReason,
      stopSequence,
      stopDetails,
      logprobs: this.#logprobs,
      refusalLogprobs: this.#refusalLogprobs,
      guardrail,
      extra: choice === undefined && message === undefined ? undefined : { choice, message },
    };
  }
}

type ChoiceFinish = Pick<ChatChoice, "finishReason" | "stopSequence" | "stopDetails" | "guardrail">;

function addExtra(call: CollectedCall, more: ToolCallExtra | undefined): void {
  if (more === undefined) return;
  call.extra ??= {};
  call.extra.call = accumulated(call.extra.call, more.call);
  call.extra.body = accumulated(call.extra.body, more.body);
}

/** Adds to one list: copying it with each delta would take quadratic time. */
function joined(
  before: unknown[] | undefined,
  more: TokenLogprobs | undefined,
): unknown[] | undefined {
  if (more === undefined || more.length === 0) return before;
  const list = before ?? [];
  for (const entry of more) list.push(entry);
  return list;
}

type Fields = Record<string, unknown>;

/** Fields of a choice or of a chunk describe its state: the latest counts. */
function replaced(before: Fields | undefined, more: ExtraFields | undefined): Fields | undefined {
  return more === undefined ? before : Object.assign(before ?? {}, more);
}

/** Names of texts that servers repeat in each piece, as the official clients take them. */
const repeatedTexts: ReadonlySet<string> = new Set(["id", "type", "index", "format", "object"]);

/**
 * Fields of a delta are pieces, as of `audio`: texts and lists are joined, objects too, and of
 * other values the latest counts. The official clients do the same.
 */
function accumulated(
  before: Fields | undefined,
  more: ExtraFields | undefined,
): Fields | undefined {
  if (more === undefined) return before;
  const sum = before ?? {};
  for (const [name, value] of Object.entries(more)) {
    // This name would reach the prototype that all objects share.
    if (name === "__proto__") continue;
    const own = sum[name];
    if (isObject(value)) sum[name] = accumulated(isFields(own) ? own : undefined, value);
    else if (Array.isArray(value)) sum[name] = joined(Array.isArray(own) ? own : undefined, value);
    else if (typeof value === "string" && typeof own === "string" && !repeatedTexts.has(name)) {
      sum[name] = own + value;
    } else sum[name] = value;
  }
  return sum;
}

/** Objects within a sum are its own, so they may be changed. */
function isFields(value: unknown): value is Fields {
  return isObject(value);
}

/** Most tool calls in one choice: OpenAI takes back 128 in a message. */
export const mostToolCalls = 1_024;
/** Most choices in an answer: requests for more are refused. */
export const mostChoices = 128;

/** Throws `UpstreamFailure` when `count` is too large. */
export function checkToolCallCount(count: number): void {
  if (count <= mostToolCalls) return;
  throw answerTooLarge(`more than ${mostToolCalls} tool calls in a choice`);
}

/** Throws `UpstreamFailure` when `count` is too large: nobody asked for so many. */
export function checkChoiceCount(count: number): void {
  if (count > mostChoices) throw brokenAnswer(`the answer has more than ${mostChoices} choices`);
}
