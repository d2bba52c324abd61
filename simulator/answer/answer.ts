import type { Prompt } from "./prompt.ts";

/** One step of an answer, independent of the wire format. `tokens` is its number of tokens. */
export type AnswerEvent =
  | { readonly kind: "reasoning"; readonly piece: string; readonly tokens: number }
  | { readonly kind: "text"; readonly piece: string; readonly tokens: number }
  | { readonly kind: "refusal"; readonly piece: string; readonly tokens: number }
  | {
      /** A tool call begins. */
      readonly kind: "call";
      readonly index: number;
      /** The number of calls in the answer. */
      readonly count: number;
      readonly id: string;
      readonly name: string;
      readonly tool: "function" | "text";
      readonly tokens: number;
    }
  | {
      /** More of the input of the call with this index. */
      readonly kind: "input";
      readonly index: number;
      readonly tool: "function" | "text";
      readonly piece: string;
      readonly tokens: number;
    }
  | {
      /** Always the last event. */
      readonly kind: "finish";
      readonly reason: FinishReason;
      /** The stop sequence that ended the answer, if one did. */
      readonly stopSequence?: string | undefined;
      readonly completionTokens: number;
      readonly reasoningTokens: number;
    };

export type FinishReason = "stop" | "length" | "tool-calls";

/** All events except the last; only these have tokens. */
export type ContentEvent = Exclude<AnswerEvent, { kind: "finish" }>;

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

/**
 * Finds the first complete stop sequence in a text that arrives in pieces, as a model does while it
 * writes. Holds back only what may be the beginning of one.
 */
class StopSearch {
  readonly #sequences: readonly string[];
  readonly #longest: number;
  #held: string[] = [];
  #found: string | undefined;

  constructor(sequences: readonly string[]) {
    this.#sequences = sequences.filter((sequence) => sequence !== "");
    this.#longest = Math.max(0, ...this.#sequences.map((sequence) => sequence.length));
  }

  /** The stop sequence that ended the text; nothing may be pushed after it. */
  get found(): string | undefined {
    return this.#found;
  }

  /** Returns the pieces that certainly belong to the answer. */
  push(piece: string): string[] {
    this.#held.push(piece);
    const text = this.#held.join("");
    const [found] = this.#sequences
      .map((sequence) => ({ sequence, place: text.indexOf(sequence) }))
      .filter(({ place }) => place >= 0)
      .map((hit) => ({ ...hit, end: hit.place + hit.sequence.length }))
      .sort((one, other) => one.end - other.end || one.place - other.place);
    this.#found = found?.sequence;
    if (found !== undefined) return this.#upTo(found.place);
    let certain = 0;
    let count = 0;
    for (const { length } of this.#held) {
      if (text.length - certain - length < this.#longest - 1) break;
      certain += length;
      count += 1;
    }
    return this.#held.splice(0, count);
  }

  /** The pieces that are still held back when the text ends without a stop sequence. */
  rest(): string[] {
    return this.#held.splice(0);
  }

  #upTo(length: number): string[] {
    const pieces: string[] = [];
    let room = length;
    for (const piece of this.#held.splice(0)) {
      if (room > 0) pieces.push(piece.slice(0, room));
      room -= piece.length;
    }
    return pieces;
  }
}
