import type { FrameSource } from "../edge/replies/event-stream.ts";
import type { Reply } from "../edge/replies/reply.ts";

/** A streamed answer before it is written: its frames, and what its writer must know. */
export interface StreamedAnswer {
  readonly status: 200;
  readonly headers: Readonly<Record<string, string>>;
  readonly frames: FrameSource;
  /** What is sent in silence. */
  readonly keepAlive: string;
  /** Whether the headers go out before there is an event. */
  readonly isEarly: boolean;
}

/** Frames of an answer that is made for the first time. */
export interface AnswerFrames extends FrameSource {
  /** Set together with the last frames: what came is the whole answer, or ends with an error. */
  readonly ending: "whole" | "failed" | undefined;
}

/** A streamed answer as its call gives it. */
export interface OpenedAnswer extends StreamedAnswer {
  readonly frames: AnswerFrames;
}

export type Answer = Reply | StreamedAnswer;

export function isStreamed<Streamed extends StreamedAnswer>(
  answer: Reply | Streamed,
): answer is Streamed {
  return "frames" in answer;
}

/** Headers that tell of the caller's own limits and waits at that time, and of nothing else. */
const momentary = /^x-(?:ratelimit|sluice-queue)-/;

/** What of an answer's headers belongs to the answer, whoever gets it and whenever. */
export function lastingHeaders(
  headers: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !momentary.test(name)));
}

/** The answer as those get it who did not pay for it. */
export function asReplayed<Given extends Answer>(answer: Given): Given {
  const headers = { ...lastingHeaders(answer.headers), "idempotent-replayed": "true" };
  return { ...answer, headers };
}
