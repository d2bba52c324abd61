/** The bytes of one write, and the number of completion tokens in them. */
export interface Frame {
  readonly data: string | Uint8Array<ArrayBuffer>;
  readonly tokens: number;
  /** True on the frame that contains the usage. */
  readonly hasUsage?: boolean;
}

/**
 * Frames before the middle of a stream, where its faults happen: the beginning and the first words.
 */
export const framesBeforeMiddle = 3;

/** A pause in the middle of an answer; `Infinity` lasts until the caller leaves. */
interface Pause {
  readonly pauseMs: number;
}

export type Step = Frame | Pause;

/** An answer that has not been sent yet. */
export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Generated lazily, when there is room to send. */
  readonly steps: Iterable<Step>;
  readonly isStreamed: boolean;
  /** Returns at least this many bytes that every reader skips. Default: white space. */
  readonly filler?: (sizeBytes: number) => Uint8Array;
}

export function isPause(step: Step): step is Pause {
  return "pauseMs" in step;
}

export function isFrame(step: Step): step is Frame {
  return "data" in step;
}

export function jsonReply(
  text: string,
  details: Partial<Pick<Reply, "status" | "headers">> & Partial<Omit<Frame, "data">> = {},
): Reply {
  const { status = 200, headers = {}, tokens = 0, hasUsage = false } = details;
  return {
    status,
    headers: { "content-type": "application/json", ...headers },
    steps: [{ data: text, tokens, hasUsage }],
    isStreamed: false,
  };
}
