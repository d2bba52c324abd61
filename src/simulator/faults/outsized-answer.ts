import type { AnswerEvent } from "../answer/answer-event.ts";
import { textAnswer } from "../answer/limit-answer.ts";
import { countTo } from "../answer/write-answer.ts";
import type { Fault } from "./fault-mode.ts";

const mebibyte = 1024 * 1024;

/** The oversized answer of a fault; undefined for other faults. */
export function outsizedAnswer(fault: Fault): Iterable<AnswerEvent> | undefined {
  if (fault.mode === "giant-chunk") return giantAnswer((fault.argument ?? 1) * mebibyte);
  if (fault.mode === "million-chunks") return textAnswer(countTo(fault.argument ?? 1_000_000));
  return undefined;
}

function* giantAnswer(size: number): Generator<AnswerEvent, void, void> {
  const tokens = Math.ceil(size / 4);
  yield { kind: "text", piece: "giant ".repeat(Math.ceil(size / 6)).slice(0, size), tokens };
  yield { kind: "finish", reason: "stop", completionTokens: tokens, reasoningTokens: 0 };
}
