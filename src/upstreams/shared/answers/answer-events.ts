import type {
  AnswerReasoning,
  ChatEvent,
  ExtraFields,
  FinishReason,
  GuardrailOutcome,
} from "../../../domain/chat/answer.ts";
import type { ToolKind } from "../../../domain/chat/conversation.ts";
import {
  answerTooLarge,
  brokenAnswer,
  UpstreamFailure,
  type UpstreamFailureDetails,
} from "../../../domain/errors/upstream-failure.ts";
import type { TokenUsage } from "../../../domain/usage/usage.ts";
import { checkToolCallCount } from "../collect-answer.ts";
import { nonEmpty } from "../../../domain/json-fields.ts";
import {
  finishReasonOf,
  interruptedAnswer,
  type OnUnknownFinish,
  readFinishWord,
} from "../finish-words.ts";
import { StopCutter } from "../stop-cutter.ts";
import type { AnswerContext } from "./answer-context.ts";
import { ignoredInput, JsonInput, FreeTextInput, type ToolInput } from "./tool-input.ts";

/** What the service reports about a whole answer, apart from its content. */
interface AnswerEnd {
  readonly guardrail?: GuardrailOutcome | undefined;
  readonly usage?: TokenUsage | undefined;
  /** The stop sequence that the model named. */
  readonly stopSequence?: string | undefined;
  readonly stopDetails?: ExtraFields | undefined;
}

/** The service returns one choice. If there are several, each comes from its own request. */
const choice = 0;
/** Largest text that is held back or kept, in characters; the longest answers are far shorter. */
const longestHeldText = 4 * 1024 * 1024;

/**
 * Turns an answer's content into events, in the terms of the caller's request, for whole and
 * streamed answers alike.
 */
export class AnswerEvents {
  readonly #context: AnswerContext;
  readonly #onUnknownFinish: OnUnknownFinish;
  readonly #cutter: StopCutter;
  #events: ChatEvent[] = [];
  #hasSpoken = false;
  /** Whether there is more than thoughts. */
  #hasContent = false;
  /** Counts tool calls from 0, because the service counts all blocks of content together. */
  #callCount = 0;
  readonly #usedIds = new Set<string>();
  #hasFunctionCall = false;
  #hasAnswerCall = false;
  #startsText = false;
  #heldText = "";
  /** The text sent to the caller, if it must be checked. */
  #saidText = "";

  constructor(context: AnswerContext, onUnknownFinish: OnUnknownFinish) {
    this.#context = context;
    this.#onUnknownFinish = onUnknownFinish;
    this.#cutter = new StopCutter(context.stopSequences);
  }

  /** Adds the next events to a list. */
  writeTo(events: ChatEvent[]): void {
    this.#hasSpoken = this.hasSpoken;
    this.#events = events;
  }

  /** Whether there has been an event. */
  get hasSpoken(): boolean {
    return this.#hasSpoken || this.#events.length > 0;
  }

  /** Whether a stop sequence ended the answer: anything after it is left out. */
  get isCut(): boolean {
    return this.#cutter.isCut;
  }

  /** Call before each block of text, which stays apart from one before it. */
  startText(): void {
    this.#emitText(this.#cutter.flush());
    this.#startsText = true;
  }

  /** What the text of the block so far rests on. */
  citation(citation: ExtraFields): void {
    if (this.isCut || this.#context.answerTool !== undefined) return;
    this.#emitText(this.#cutter.flush());
    this.#events.push({ type: "text-delta", choice, text: "", extra: { citation } });
  }

  /**
   * If a tool's input is the answer, text beside it would spoil it. The text is held back until it
   * is clear that the model did not use that tool.
   */
  text(text: string, logprobs?: readonly unknown[]): void {
    if (this.#context.answerTool === undefined) {
      const said = this.#cutter.push(text);
      this.#emitText(said, said === text ? logprobs : undefined);
      return;
    }
    if (this.#hasAnswerCall) return;
    this.#heldText += text;
    if (this.#heldText.length > longestHeldText) {
      throw answerTooLarge(`more than ${longestHeldText} characters`);
    }
  }

  refusal(text: string, logprobs: readonly unknown[] = []): void {
    if (this.isCut) return;
    this.#hasContent = true;
    const delta = { type: "refusal-delta", choice, text } as const;
    this.#events.push(logprobs.length > 0 ? { ...delta, logprobs } : delta);
  }

  reasoning(text: string): void {
    if (text === "" || this.isCut) return;
    this.#events.push({ type: "reasoning-delta", choice, text });
  }

  #emitText(text: string, logprobs: readonly unknown[] = []): void {
    if (text === "") return;
    this.#hasContent = true;
    const plain = { type: "text-delta", choice, text } as const;
    const delta = logprobs.length > 0 ? { ...plain, logprobs } : plain;
    this.#events.push(this.#startsText ? { ...delta, isStart: true } : delta);
    this.#startsText = false;
    if (this.#context.check === undefined) return;
    this.#saidText += text;
    if (this.#saidText.length > longestHeldText) {
      throw answerTooLarge(`more than ${longestHeldText} characters`);
    }
  }

  /** The part of its thoughts that the model needs back, if any. */
  reasoningBlock(block: AnswerReasoning | undefined): void {
    if (block === undefined || this.isCut) return;
    this.#events.push({ type: "reasoning-block", choice, content: block });
  }

  /** Begins a tool call; returns its input. Throws `UpstreamFailure` if it is nameless. */
  toolUse(sentId: unknown, wireName: unknown): ToolInput {
    if (this.isCut) return ignoredInput;
    const id = nonEmpty(sentId);
    const sentName = nonEmpty(wireName);
    if (id === undefined || sentName === undefined) {
      throw brokenAnswer("a tool call has no id or no name");
    }
    if (sentName === this.#context.answerTool) return this.#startAnswer();
    const name = this.#context.toolNames.get(sentName) ?? sentName;
    if (!this.#context.textTools.has(sentName)) return this.plainCall(id, name, "function");
    const input = this.plainCall(id, name, "custom");
    return input === ignoredInput ? input : new FreeTextInput((text) => input.push(text));
  }

  /** Begins a call whose input is as the caller's tool has it: JSON, or a text of its own. */
  plainCall(id: string, name: string, kind: ToolKind): ToolInput {
    this.#emitText(this.#restOfText());
    if (this.isCut) return ignoredInput;
    if (this.#context.usesFunctions) return this.#startFunctionCall(name);
    return this.#startToolCall(id, name, kind);
  }

  serviceTier(serviceTier: string | undefined): void {
    if (serviceTier === undefined) return;
    this.#events.push({ type: "answer-start", systemFingerprint: undefined, serviceTier });
  }

  /**
   * Throws `UpstreamFailure` when the reason is not that of a whole answer, or when the answer does
   * not have the required format.
   */
  finish(stopReason: string | undefined, end: AnswerEnd = {}): void {
    const { guardrail, usage, stopSequence, stopDetails } = end;
    const rest = this.#restOfText();
    const reason = this.isCut && !isFiltered(stopReason) ? "stop_sequence" : stopReason;
    const ended = { callsFinish: this.#callsFinish(), hasContent: this.#hasContent || rest !== "" };
    const finishReason = this.#finishReason(reason, ended, usage);
    this.#emitText(rest);
    // An answer that was cut or filtered is incomplete, and a tool call is not the answer yet.
    const isWhole = finishReason === "stop";
    const problem = isWhole ? this.#context.check?.(this.#saidText) : undefined;
    if (problem !== undefined) throw this.#unusable(problem, usage);
    this.#events.push({
      type: "choice-finish",
      choice,
      finishReason,
      ...(finishReason === "stop_sequence" && this.#stopOf(stopSequence)),
      ...(finishReason === "refusal" && stopDetails !== undefined && { stopDetails }),
      ...(guardrail !== undefined && { guardrail }),
    });
    this.#countUsage(usage);
  }

  #stopOf(told: string | undefined): { readonly stopSequence?: string } {
    const { sentStop } = this.#context;
    const stopSequence = this.isCut ? this.#cutter.found : (told ?? sentStop);
    return stopSequence === undefined ? {} : { stopSequence };
  }

  #finishReason(
    reason: string | undefined,
    ended: EndedAnswer,
    usage: TokenUsage | undefined,
  ): FinishReason {
    try {
      return readStopReason(reason, ended, this.#onUnknownFinish);
    } catch (error) {
      throw error instanceof UpstreamFailure ? this.#unusable(error.details, usage) : error;
    }
  }

  /** The failure of an answer that was generated, and costs what it costs. */
  #unusable(details: UpstreamFailureDetails, usage: TokenUsage | undefined): UpstreamFailure {
    // As the first event, it would keep other targets from being tried.
    if (this.hasSpoken) this.#countUsage(usage);
    return new UpstreamFailure({ ...details, usage });
  }

  #countUsage(usage: TokenUsage | undefined): void {
    if (usage !== undefined) this.#events.push({ type: "usage-report", usage });
  }

  #callsFinish(): CallsFinish {
    if (this.#hasFunctionCall) return "function_call";
    return this.#callCount > 0 ? "tool_calls" : undefined;
  }

  /** The held text that belongs to the answer, up to a stop sequence. */
  #restOfText(): string {
    const text = this.#heldText;
    this.#heldText = "";
    return this.#cutter.push(text) + this.#cutter.flush();
  }

  /**
   * A second answer would make both unreadable, and an answer after a call of the caller's own
   * tools is not final.
   */
  #startAnswer(): ToolInput {
    if (this.#hasAnswerCall || this.#callsFinish() !== undefined) return ignoredInput;
    this.#heldText = "";
    this.#hasAnswerCall = true;
    return new JsonInput((text) => this.#emitText(text));
  }

  /** The deprecated format has room for one call. */
  #startFunctionCall(name: string): ToolInput {
    if (this.#hasFunctionCall) return ignoredInput;
    this.#hasFunctionCall = true;
    this.#hasContent = true;
    this.#events.push({ type: "function-call-start", choice, name });
    return new JsonInput((text) =>
      this.#events.push({ type: "function-call-delta", choice, arguments: text }),
    );
  }

  #startToolCall(id: string, name: string, kind: ToolKind): ToolInput {
    const call = this.#callCount;
    this.#callCount += 1;
    this.#hasContent = true;
    checkToolCallCount(this.#callCount);
    // Callers answer calls by their ids, so no two have the same.
    const ownId = this.#usedIds.has(id) ? `${id}_${call}` : id;
    this.#usedIds.add(ownId);
    this.#events.push({ type: "tool-call-start", choice, call, id: ownId, kind, name });
    const say = (text: string): void => {
      this.#events.push({ type: "tool-call-delta", choice, call, arguments: text });
    };
    return kind === "custom" ? { push: say, end: () => undefined } : new JsonInput(say);
  }
}

/** How an answer's tool calls end it; undefined if it has none that the caller must answer. */
type CallsFinish = "tool_calls" | "function_call" | undefined;

/** What an answer contains, apart from its text, when it ends. */
interface EndedAnswer {
  readonly callsFinish: CallsFinish;
  readonly hasContent: boolean;
}

/**
 * The reason for a `stopReason`. Throws `UpstreamFailure` for a missing reason, for reasons that
 * mean a failure, and for an unknown one without content.
 */
function readStopReason(
  stopReason: string | undefined,
  { callsFinish, hasContent }: EndedAnswer,
  onUnknown: OnUnknownFinish,
): FinishReason {
  if (stopReason === undefined || stopReason === "") {
    throw brokenAnswer("the upstream's answer does not say why it ended");
  }
  const own = ownReasons.get(stopReason);
  if (own === "stop_sequence" || own === "pause") return callsFinish ?? own;
  if (own !== undefined) return own;
  const meaning = readFinishWord(stopReason);
  if (meaning === "interrupted") throw interruptedAnswer(stopReason);
  if (meaning === "unknown") {
    // A new reason must not make callers lose their answers.
    onUnknown(stopReason);
    if (!hasContent) throw brokenAnswer("the upstream's answer ended empty");
  }
  return finishReasonOf(meaning, callsFinish);
}

/** Reasons beyond OpenAI's, of Converse and Messages. */
const ownReasons: ReadonlyMap<string, FinishReason> = new Map([
  ["stop_sequence", "stop_sequence"],
  ["model_context_window_exceeded", "window_full"],
  ["refusal", "refusal"],
  ["pause_turn", "pause"],
]);

/** Whether the answer is not the model's own, or not one. */
function isFiltered(stopReason: string | undefined): boolean {
  if (stopReason === undefined) return false;
  return stopReason === "refusal" || readFinishWord(stopReason) === "content_filter";
}
