import type { ChatEvent } from "../../../domain/chat/chat.ts";
import type { UpstreamFailure } from "../../../domain/errors/upstream-failure.ts";
import type { StreamDecoder } from "../../adapter.ts";
import type { AnswerContext } from "../encode/answer-context.ts";
import { answerFailure, brokenAnswer } from "./broken-answer.ts";
import { converseEvents } from "./converse-events.ts";
import type { OnUnknownStopReason } from "./stop-reason.ts";

/** Largest whole answer that is replayed; the longest answers are far shorter. */
const replayLimitBytes = 64 * 1024 * 1024;
/** Length of the pieces in characters: small enough to look like a stream, and not too many. */
const pieceCharacters = 512;

/** Streams the whole answer of a model that cannot stream the requested kind of answer. */
export class WholeAnswerReplay implements StreamDecoder<ChatEvent> {
  readonly #context: AnswerContext;
  readonly #onUnknownStopReason: OnUnknownStopReason;
  readonly #decoder = new TextDecoder();
  #json = "";
  #receivedBytes = 0;
  #isDone = false;
  #failure: UpstreamFailure | undefined;

  constructor(context: AnswerContext, onUnknownStopReason: OnUnknownStopReason = () => undefined) {
    this.#context = context;
    this.#onUnknownStopReason = onUnknownStopReason;
  }

  get failure(): UpstreamFailure | undefined {
    return this.#failure;
  }

  get isDone(): boolean {
    return this.#isDone;
  }

  get malformedEvents(): number {
    return 0;
  }

  push(bytes: Uint8Array): readonly ChatEvent[] {
    if (this.#isDone || this.#failure !== undefined) return [];
    this.#receivedBytes += bytes.length;
    if (this.#receivedBytes > replayLimitBytes) {
      this.#failure = brokenAnswer("the upstream's answer is too long");
      this.#json = "";
    } else this.#json += this.#decoder.decode(bytes, { stream: true });
    return [];
  }

  end(): readonly ChatEvent[] {
    if (this.#isDone || this.#failure !== undefined) return [];
    try {
      const json = this.#json + this.#decoder.decode();
      const whole = converseEvents({ json }, this.#context, this.#onUnknownStopReason);
      const events = whole.flatMap(inPieces);
      this.#isDone = true;
      return events;
    } catch (error) {
      this.#failure = answerFailure(error);
      return [];
    }
  }
}

function inPieces(event: ChatEvent): readonly ChatEvent[] {
  switch (event.type) {
    case "text-delta":
    case "reasoning-delta":
      return cut(event.text).map((text) => ({ ...event, text }));
    case "tool-call-delta":
    case "function-call-delta":
      return cut(event.arguments).map((piece) => ({ ...event, arguments: piece }));
    case "reasoning-block":
    case "refusal-delta":
    case "tool-call-start":
    case "function-call-start":
    case "choice-finish":
    case "usage-report":
    case "answer-start":
      return [event];
  }
}

function cut(text: string): readonly string[] {
  const pieces: string[] = [];
  for (let start = 0; start < text.length; start += pieceCharacters) {
    pieces.push(text.slice(start, start + pieceCharacters));
  }
  return pieces;
}
