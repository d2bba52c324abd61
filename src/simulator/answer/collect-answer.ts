import type { AnswerEvent } from "./answer-event.ts";

/** An unstreamed answer. */
export interface WholeAnswer {
  readonly reasoning: string;
  readonly text: string;
  readonly refusal: string | undefined;
  /** The tokens of text and refusal. */
  readonly pieces: readonly string[];
  readonly calls: readonly CollectedCall[];
  readonly finish: FinishEvent;
}

export interface CollectedCall {
  readonly id: string;
  readonly name: string;
  readonly tool: "function" | "text";
  readonly input: string;
}

export type FinishEvent = Extract<AnswerEvent, { kind: "finish" }>;

export function collectAnswer(events: Iterable<AnswerEvent>): WholeAnswer {
  const written = { reasoning: "", text: "", refusal: "" };
  const pieces: string[] = [];
  const calls: { id: string; name: string; tool: "function" | "text"; input: string }[] = [];
  let finish: FinishEvent = {
    kind: "finish",
    reason: "stop",
    completionTokens: 0,
    reasoningTokens: 0,
  };
  for (const event of events) {
    switch (event.kind) {
      case "reasoning":
      case "text":
      case "refusal":
        written[event.kind] += event.piece;
        if (event.kind !== "reasoning") pieces.push(event.piece);
        break;
      case "call":
        calls.push({ id: event.id, name: event.name, tool: event.tool, input: "" });
        break;
      case "input": {
        const call = calls[event.index];
        if (call !== undefined) call.input += event.piece;
        break;
      }
      case "finish":
        finish = event;
    }
  }
  return { ...written, refusal: written.refusal || undefined, pieces, calls, finish };
}
