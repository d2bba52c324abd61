import type { FrameSource } from "../edge/replies/event-stream.ts";

/** A streamed answer before it is written. */
export interface StreamedAnswer {
  readonly status: 200;
  readonly headers: Readonly<Record<string, string>>;
  readonly frames: FrameSource;
  /** Sent when the stream is silent. */
  readonly keepAlive: () => string;
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
  /** The body, or all frames of a stream. */
  readonly text: string;
}

/** Headers about the limits and waits of the caller that made the call. */
const momentary = /^(?:x-ratelimit|anthropic-ratelimit|x-sluice-queue)-/;

/** The headers that hold for every caller that gets the answer. */
export function lastingHeaders(
  headers: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !momentary.test(name)));
}

/** The pieces of a kept answer; `onEnd` is called when they were read, or their reader left. */
export function piecesOf(text: string, onEnd: () => void): FrameSource {
  let rest = text;
  return {
    get isOver() {
      return rest === "";
    },
    take() {
      // A pair of surrogates is one character.
      const [piece] = /^[^]{1,65536}(?![\udc00-\udfff])/.exec(rest) ?? [];
      rest = rest.slice(piece?.length);
      return piece;
    },
    whenReady: (call) => call(),
    cancel: onEnd,
  };
}
