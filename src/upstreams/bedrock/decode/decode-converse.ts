import type { ChatEvent, ChatResult } from "../../../domain/chat/answer.ts";
import { brokenAnswer, UpstreamFailure } from "../../../domain/errors/upstream-failure.ts";
import type { TokenUsage } from "../../../domain/usage/usage.ts";
import type { DecoderLimits, WholeAnswer } from "../../adapter.ts";
import { collectAnswer, collectStream } from "../../shared/collect-answer.ts";
import type { OnUnknownFinish } from "../../shared/finish-words.ts";
import { AnswerDecoder } from "../../shared/answer-decoder.ts";
import {
  type JsonObject,
  numberOf,
  objectOf,
  parseObject,
  textOf,
} from "../../../domain/json-fields.ts";
import type { AnswerContext } from "../../shared/answers/answer-context.ts";
import { billedTier } from "../../../domain/money/service-tier.ts";
import { stopSequenceIn } from "../encode/stop-sequence.ts";
import { AnswerEvents } from "../../shared/answers/answer-events.ts";
import {
  ConverseBlocks,
  converseEvents,
  hasProperShape,
  type KnownEvent,
  readUsage,
} from "./converse-events.ts";
import { guardrailOutcome } from "./guardrail.ts";
import { type Frame, FrameReader } from "./event-stream.ts";
import { failureInAnswer, failureOfException } from "../read-failure.ts";

interface ConverseReader {
  readonly context: AnswerContext;
  readonly onUnknownFinish: OnUnknownFinish;
}

/**
 * Reads the answer to a request for a whole one: Converse's JSON, or a stream in its place. Throws
 * `UpstreamFailure` for anything else.
 */
export function decodeConverse(
  { headers, body }: WholeAnswer,
  context: AnswerContext,
  onUnknownFinish: OnUnknownFinish = () => undefined,
): ChatResult {
  // A frame begins with its length, which is below 2 ** 24; no JSON begins with a zero.
  if (body[0] === 0) {
    const reader = { context, onUnknownFinish };
    return collectStream((limits) => new ConverseStreamDecoder(reader, limits), body);
  }
  const json = new TextDecoder().decode(body);
  return collectAnswer(converseEvents({ json, headers }, context, onUnknownFinish));
}

/**
 * Reads a ConverseStream as events. The finish is held back until the metadata after it or the end
 * of the body, so an exception in between never follows an answer that looked whole. A whole answer
 * in place of a stream is replayed.
 */
export class ConverseStreamDecoder extends AnswerDecoder {
  readonly #frames = new FrameReader();
  readonly #text = new TextDecoder();
  readonly #reader: ConverseReader;
  readonly #answer: AnswerEvents;
  readonly #blocks: ConverseBlocks;
  #stopReason: string | undefined;
  #modelFields: unknown;
  #hasMetadata = false;
  #usage: TokenUsage | undefined;
  #serviceTier: string | undefined;
  #trace: unknown;

  constructor(reader: ConverseReader, limits: DecoderLimits) {
    super(limits);
    this.#reader = reader;
    this.#answer = new AnswerEvents(reader.context, reader.onUnknownFinish);
    this.#blocks = new ConverseBlocks(this.#answer);
  }

  get endedEarly(): boolean {
    return this.#answer.isCut;
  }

  protected override read(bytes: Uint8Array, events: ChatEvent[]): void {
    this.#answer.writeTo(events);
    for (const frame of this.#frames.push(bytes)) {
      this.#readFrame(frame);
      if (this.isDone) return;
    }
    if (this.#frames.failure !== undefined) throw this.#frames.failure;
  }

  /** Metadata may be missing: the answer is whole without it. */
  protected override readEnd(events: ChatEvent[]): void {
    this.#answer.writeTo(events);
    this.#frames.end();
    if (this.#frames.failure !== undefined) throw this.#frames.failure;
    this.#finish();
  }

  protected override readWhole(json: string): readonly ChatEvent[] {
    const { context, onUnknownFinish } = this.#reader;
    return converseEvents({ json }, context, onUnknownFinish);
  }

  #readFrame(frame: Frame): void {
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
    }
  }

  /** Unknown events, like the start of a message, change nothing. */
  #readEvent(frame: Frame): void {
    const { eventType } = frame.headers;
    switch (eventType) {
      case "contentBlockDelta":
      case "contentBlockStart":
      case "contentBlockStop":
      case "messageStop":
      case "metadata": {
        const event = parseObject(this.#text.decode(frame.payload));
        if (event !== undefined && hasProperShape(eventType, event)) {
          return this.#readKnown(eventType, event);
        }
        return this.#skip(event);
      }
      default:
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
        this.#stopReason = textOf(event["stopReason"]);
        this.#modelFields = event["additionalModelResponseFields"];
        return this.#finishIfWhole();
      case "metadata":
        this.#readMetadata(event);
        return this.#finishIfWhole();
    }
  }

  /** Before any content, another target can still answer. An incomplete tool call could do harm. */
  #skip(event: JsonObject | undefined): void {
    const failure = event && failureInAnswer(event);
    if (failure !== undefined) throw failure;
    this.skipMalformed({ mayGoOn: this.#answer.hasSpoken && !this.#blocks.isWithinCall });
  }

  #readDelta(event: JsonObject): void {
    this.#blocks.delta(blockIndexOf(event), objectOf(event["delta"]) ?? {});
    if (this.#answer.isCut) this.#finishEarly();
  }

  #readBlockStart(event: JsonObject): void {
    const toolUse = objectOf(objectOf(event["start"])?.["toolUse"]);
    if (toolUse !== undefined) this.#blocks.start(blockIndexOf(event), toolUse);
  }

  #readMetadata(event: JsonObject): void {
    this.#hasMetadata = true;
    this.#serviceTier = textOf(objectOf(event["serviceTier"])?.["type"]);
    const tier = billedTier(this.#serviceTier, this.#reader.context.askedTier);
    this.#usage = readUsage(event["usage"], this.#modelFields, tier);
    this.#trace = event["trace"];
  }

  /** The caller has the complete answer; the rest of the upstream's stream is not awaited. */
  #finishEarly(): void {
    this.#answer.finish("stop_sequence");
    this.finish();
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
    this.finish();
  }
}

function blockIndexOf(event: JsonObject): number | undefined {
  return numberOf(event["contentBlockIndex"]);
}

function exceptionFailure(name: string | undefined, body: JsonObject): UpstreamFailure {
  return new UpstreamFailure(failureOfException({ name, body }));
}
