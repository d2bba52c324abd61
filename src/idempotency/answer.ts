import { type FrameSource, keepAliveComment } from "../edge/replies/event-stream.ts";
import type { Reply } from "../edge/replies/error-reply.ts";

/** A streamed answer before it is written. */
export interface StreamedAnswer {
  readonly status: 200;
  readonly headers: Readonly<Record<string, string>>;
  readonly frames: FrameSource;
  /** Sent when the stream is silent. */
  readonly keepAlive: string;
  /** Whether the headers go out before the first event. */
  readonly isEarly: boolean;
}

/** Frames of a new answer. */
export interface AnswerFrames extends FrameSource {
  /** Set together with the last frames: the answer is complete, or ended with an error. */
  readonly ending: "whole" | "failed" | undefined;
}

export interface OpenedAnswer extends StreamedAnswer {
  readonly frames: AnswerFrames;
}

/** A complete answer as it was sent. */
export interface KeptAnswer {
  readonly headers: Readonly<Record<string, string>>;
  readonly isStreamed: boolean;
  /** The body, or all frames of a stream. */
  readonly text: string;
}

/** Headers about the limits and waits of the caller that made the call. */
const momentary = /^x-(?:ratelimit|sluice-queue)-/;

/** The headers that hold for every caller that gets the answer. */
export function lastingHeaders(
  headers: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !momentary.test(name)));
}

/** A kept answer as a repeat gets it. */
export function replayed({ headers, text }: KeptAnswer): Reply & { readonly status: 200 } {
  return { status: 200, headers: replayHeaders(headers), body: text };
}

/** A kept stream as a repeat gets it. `onUnread`: so much more of it is unread, or less. */
export function replayedStream(
  { headers, text }: KeptAnswer,
  onUnread: OnUnread = () => undefined,
): StreamedAnswer {
  // A replay is never silent, so no keep-alive is ever sent.
  return {
    status: 200,
    headers: replayHeaders(headers),
    frames: new ReplayedFrames(text, onUnread),
    keepAlive: keepAliveComment,
    isEarly: false,
  };
}

function replayHeaders(headers: Readonly<Record<string, string>>): Record<string, string> {
  return { ...headers, "idempotent-replayed": "true" };
}

type OnUnread = (bytes: number) => void;

/** The size of a piece, up to the end of its last frame. */
const pieceCharacters = 16_384;

/** The frames of a kept answer, in pieces. */
class ReplayedFrames implements FrameSource {
  readonly #onUnread: OnUnread;
  #rest: string;

  constructor(text: string, onUnread: OnUnread) {
    this.#onUnread = onUnread;
    this.#rest = text;
    onUnread(text.length);
  }

  take(): string | undefined {
    if (this.isOver) return undefined;
    const frameEnd = this.#rest.indexOf("\n\n", pieceCharacters);
    const end = frameEnd < 0 ? this.#rest.length : frameEnd + 2;
    const piece = this.#rest.slice(0, end);
    this.#rest = this.#rest.slice(end);
    this.#onUnread(-piece.length);
    return piece;
  }

  get isOver(): boolean {
    return this.#rest === "";
  }

  whenReady(call: () => void): void {
    call();
  }

  cancel(): void {
    if (this.isOver) return;
    this.#onUnread(-this.#rest.length);
    this.#rest = "";
  }
}
