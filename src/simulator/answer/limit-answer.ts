import type { AnswerEvent, ContentEvent, FinishReason } from "./answer-event.ts";
import type { Prompt } from "./prompt.ts";
import { StopSearch } from "./stop-search.ts";

type Limits = Pick<Prompt, "maxTokens" | "stopSequences">;

/** Cuts an answer at its token limit or before a stop sequence; the last event has the reason. */
export function* limitAnswer(
  content: Iterable<ContentEvent>,
  limits: Limits,
): Generator<AnswerEvent, void, void> {
  const room = limits.maxTokens ?? Number.POSITIVE_INFINITY;
  let completionTokens = 0;
  let reasoningTokens = 0;
  let reason: FinishReason = "stop";
  const search = new StopSearch(limits.stopSequences);
  for (const event of stopAt(content, search)) {
    if (completionTokens + event.tokens > room) {
      reason = "length";
      break;
    }
    completionTokens += event.tokens;
    if (event.kind === "reasoning") reasoningTokens += event.tokens;
    if (event.kind === "call") reason = "tool-calls";
    yield event;
  }
  const stopSequence = reason === "length" ? undefined : search.found;
  yield { kind: "finish", reason, stopSequence, completionTokens, reasoningTokens };
}

/** An answer of these pieces of text, one token each. */
export function textAnswer(pieces: Iterable<string>): Generator<AnswerEvent, void, void> {
  const events = Iterator.from(pieces).map(
    (piece) => ({ kind: "text", piece, tokens: 1 }) as const,
  );
  return limitAnswer(events, { maxTokens: undefined, stopSequences: [] });
}

/** Only text is searched: a stop sequence inside the input of a tool would break its JSON. */
function* stopAt(
  content: Iterable<ContentEvent>,
  search: StopSearch,
): Generator<ContentEvent, void, void> {
  for (const event of content) {
    if (event.kind !== "text") {
      yield event;
      continue;
    }
    for (const piece of search.push(event.piece)) yield { ...event, piece };
    if (search.found !== undefined) return;
  }
  for (const piece of search.rest()) yield { kind: "text", piece, tokens: 1 };
}
