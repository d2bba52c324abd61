import type { ChatEvent } from "../../../domain/chat/answer.ts";
import { brokenAnswer, UpstreamFailure } from "../../../domain/errors/upstream-failure.ts";
import {
  isObject,
  type JsonObject,
  listOf,
  numberOf,
  objectOf,
  parseObject,
  textOf,
} from "../../../domain/json-fields.ts";
import { billedTier } from "../../../domain/money/service-tier.ts";
import type { TokenUsage } from "../../../domain/usage/usage.ts";
import type { AnswerHeaders } from "../../adapter.ts";
import type { AnswerWire, EventReader } from "../../shared/answer-codec.ts";
import {
  type AnswerContext,
  withoutAnswerBesideCalls,
} from "../../shared/answers/answer-context.ts";
import { AnswerEvents } from "../../shared/answers/answer-events.ts";
import type { OnUnknownFinish } from "../../shared/finish-words.ts";
import { parseExactly } from "../../shared/tools/tool-arguments.ts";
import { stopSequenceIn } from "../encode/stop-sequence.ts";
import { failureInAnswer, failureOfException } from "../read-failure.ts";
import {
  ConverseBlocks,
  hasProperShape,
  type KnownEvent,
  readBlock,
  readUsage,
} from "./converse-events.ts";
import { type Frame, FrameReader } from "./event-stream.ts";
import { guardrailOutcome } from "./guardrail.ts";

/** Answers are Converse's JSON, or streams of frames. */
export class ConverseWire implements AnswerWire<Frame> {
  readonly #context: AnswerContext;
  readonly #onUnknownFinish: OnUnknownFinish;

  constructor(context: AnswerContext, onUnknownFinish: OnUnknownFinish) {
    this.#context = context;
    this.#onUnknownFinish = onUnknownFinish;
  }

  newParser(): FrameReader {
    return new FrameReader();
  }

  newReader(): ConverseReader {
    return new ConverseReader(this.#context, this.#onUnknownFinish);
  }

  usageOf(usage: unknown): TokenUsage | undefined {
    return readUsage(usage, undefined, this.#context.askedTier);
  }
}

/**
 * Reads an answer of Converse. The finish of a stream is held back until the metadata after it or
 * the end of the body, so an exception in between never follows an answer that looked whole.
 */
class ConverseReader implements EventReader<Frame> {
  readonly #text = new TextDecoder();
  readonly #context: AnswerContext;
  readonly #answer: AnswerEvents;
  readonly #blocks: ConverseBlocks;
  #isFinished = false;
  #stopReason: string | undefined;
  #modelFields: unknown;
  #hasMetadata = false;
  #usage: TokenUsage | undefined;
  #serviceTier: string | undefined;
  #trace: unknown;

  constructor(context: AnswerContext, onUnknownFinish: OnUnknownFinish) {
    this.#context = context;
    this.#answer = new AnswerEvents(context, onUnknownFinish);
    this.#blocks = new ConverseBlocks(this.#answer);
  }

  get isFinished(): boolean {
    return this.#isFinished;
  }

  get isCut(): boolean {
    return this.#answer.isCut;
  }

  /** Before any content, another target can still answer. An incomplete tool call could do harm. */
  get mayGoOn(): boolean {
    return this.#answer.hasSpoken && !this.#blocks.isWithinCall;
  }

  /** Each block is in one piece. */
  readWhole(json: string, events: ChatEvent[], headers?: AnswerHeaders): void {
    this.#answer.writeTo(events);
    const body = parseExactly(json);
    const message = objectOf(objectOf(body["output"])?.["message"]);
    const content = listOf(message?.["content"]);
    if (content === undefined) {
      throw failureInAnswer(body, headers) ?? brokenAnswer("the upstream's answer has no content");
    }
    this.#readStop(body);
    this.#readMetadata(body);
    this.#answer.serviceTier(this.#serviceTier);
    this.#serviceTier = undefined;
    for (const block of withoutAnswerBesideCalls(content, this.#context, calledTool)) {
      if (isObject(block)) readBlock(block, this.#blocks);
    }
    this.#finish();
  }

  /** Metadata may be missing: the answer is whole without it. */
  end(events: ChatEvent[]): void {
    this.#answer.writeTo(events);
    this.#finish();
  }

  readData(frame: Frame, events: ChatEvent[]): boolean {
    this.#answer.writeTo(events);
    const { messageType, exceptionType, errorCode, errorMessage } = frame.headers;
    switch (messageType) {
      case "event":
        return this.#readEvent(frame);
      case "exception":
        // The name is sufficient if the body is empty.
        throw exceptionFailure(exceptionType, parseObject(frame.payload) ?? {});
      case "error":
        throw exceptionFailure(errorCode, { message: errorMessage });
      default:
        return true;
    }
  }

  /** Unknown events, like the start of a message, change nothing. */
  #readEvent(frame: Frame): boolean {
    const { eventType } = frame.headers;
    switch (eventType) {
      case "contentBlockDelta":
      case "contentBlockStart":
      case "contentBlockStop":
      case "messageStop":
      case "metadata": {
        const event = parseObject(this.#text.decode(frame.payload));
        if (event !== undefined && hasProperShape(eventType, event)) {
          this.#readKnown(eventType, event);
          return true;
        }
        const failure = event && failureInAnswer(event);
        if (failure !== undefined) throw failure;
        return false;
      }
      default:
        return true;
    }
  }

  #readKnown(eventType: KnownEvent, event: JsonObject): void {
    switch (eventType) {
      case "contentBlockDelta":
        return this.#readDelta(event);
      case "contentBlockStart":
        return this.#readBlockStart(event);
      case "contentBlockStop":
        return this.#blocks.end(blockIndexOf(event));
      case "messageStop":
        this.#readStop(event);
        return this.#finishIfWhole();
      case "metadata":
        this.#readMetadata(event);
        return this.#finishIfWhole();
    }
  }

  #readDelta(event: JsonObject): void {
    this.#blocks.delta(blockIndexOf(event), objectOf(event["delta"]) ?? {});
    if (!this.#answer.isCut) return;
    // The caller has the complete answer; the rest of the stream is not awaited.
    this.#answer.finish("stop_sequence");
    this.#isFinished = true;
  }

  #readBlockStart(event: JsonObject): void {
    const toolUse = objectOf(objectOf(event["start"])?.["toolUse"]);
    if (toolUse !== undefined) this.#blocks.start(blockIndexOf(event), toolUse);
  }

  #readStop(event: JsonObject): void {
    this.#stopReason = textOf(event["stopReason"]);
    this.#modelFields = event["additionalModelResponseFields"];
  }

  #readMetadata(event: JsonObject): void {
    this.#hasMetadata = true;
    this.#serviceTier = textOf(objectOf(event["serviceTier"])?.["type"]);
    const tier = billedTier(this.#serviceTier, this.#context.askedTier);
    this.#usage = readUsage(event["usage"], this.#modelFields, tier);
    this.#trace = event["trace"];
  }

  #finishIfWhole(): void {
    if (this.#stopReason !== undefined && this.#hasMetadata) this.#finish();
  }

  #finish(): void {
    if (this.#stopReason === undefined) {
      throw brokenAnswer("the upstream's stream ended before the answer was finished");
    }
    this.#blocks.endAll();
    this.#answer.serviceTier(this.#serviceTier);
    this.#answer.finish(this.#stopReason, {
      guardrail: guardrailOutcome(this.#stopReason, this.#trace),
      usage: this.#usage,
      stopSequence: stopSequenceIn(this.#modelFields),
    });
    this.#isFinished = true;
  }
}

function calledTool(block: unknown): unknown {
  return objectOf(objectOf(block)?.["toolUse"])?.["name"];
}

function blockIndexOf(event: JsonObject): number | undefined {
  return numberOf(event["contentBlockIndex"]);
}

function exceptionFailure(name: string | undefined, body: JsonObject): UpstreamFailure {
  return new UpstreamFailure(failureOfException({ name, body }));
}
