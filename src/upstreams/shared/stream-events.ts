import type { ChatEvent } from "../../domain/chat/chat.ts";
import { brokenAnswer } from "../../domain/errors/upstream-failure.ts";

/** Length of the pieces in characters: small enough to look like a stream, and not too many. */
const pieceCharacters = 512;

/** The events of a whole answer as a stream has them: long texts in pieces. */
export function inPieces(events: readonly ChatEvent[]): readonly ChatEvent[] {
  return events.flatMap(cutEvent);
}

function cutEvent(event: ChatEvent): readonly ChatEvent[] {
  switch (event.type) {
    case "text-delta":
    case "refusal-delta":
    case "reasoning-delta": {
      const { type, choice } = event;
      const [text = "", ...rest] = cut(event.text);
      // Fields beside the text belong to all of it, and go out once.
      return [{ ...event, text }, ...rest.map((piece) => ({ type, choice, text: piece }))];
    }
    case "tool-call-delta": {
      const { type, choice, call } = event;
      const [first = "", ...rest] = cut(event.arguments);
      const pieces = rest.map((piece) => ({ type, choice, call, arguments: piece }));
      return [{ ...event, arguments: first }, ...pieces];
    }
    case "function-call-delta":
      return cut(event.arguments).map((piece) => ({ ...event, arguments: piece }));
    case "reasoning-block":
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

/** Counts the malformed events of one stream. The caller does not get their content. */
export class MalformedEvents {
  readonly #limit: number;
  #count = 0;

  /** `limit`: how many are skipped. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  get count(): number {
    return this.#count;
  }

  /** Counts one. Throws `UpstreamFailure` when it must end the answer. */
  skip({ mayGoOn }: { readonly mayGoOn: boolean }): void {
    this.#count += 1;
    if (mayGoOn && this.#count <= this.#limit) return;
    throw brokenAnswer("the upstream sent a malformed event");
  }
}
