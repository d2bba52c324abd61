import { type JsonObject, objectOf, textOf } from "../../../../domain/json-fields.ts";

/** Google's servers also put thoughts between tags. */
const opening = /^\s*<(?:thought|think)>\n?/;
const closing = /<\/(?:thought|think)>\n?/;
/** What may be the first half of a tag. */
const half = /<\/?[a-z]*$/;

/**
 * Thoughts of one choice that Google's servers write into its content, with a mark beside each piece:
 * `{"content": "<thought>Hm", "extra_content": {"google": {"thought": true}}}`. The first piece without
 * a mark begins with the closing tag; a whole message has one mark for thoughts and answer. Tags may be
 * split. Sources: decolua/9router#1749, and streams of gemini-2.5-flash and gemma-4 in tests of clients.
 */
export class MarkedThoughts {
  #held = "";
  #isOpen = false;

  /** Whether the next piece may have the rest of a thought. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** A delta or message with its thoughts in a field of their own, if it has such. */
  apart(said: JsonObject): JsonObject {
    const isMarked = hasMark(said);
    if (!isMarked && !this.#isOpen) return said;
    const content = textOf(said["content"]);
    if (content === undefined) return said;
    this.#isOpen = isMarked;
    const { thoughts, text } = this.#split(this.#held + content, isMarked);
    return { ...said, content: text, reasoning_content: thoughts, extra_content: undefined };
  }

  /** What was held because it could have been the half of a tag. */
  end(): string {
    const held = this.#held;
    this.#held = "";
    return held;
  }

  #split(said: string, isMarked: boolean): { readonly thoughts: string; readonly text: string } {
    const end = closing.exec(said);
    this.#held = end === null && isMarked ? (half.exec(said)?.[0] ?? "") : "";
    if (end === null && !isMarked) return { thoughts: "", text: said };
    const thoughts = said.slice(0, end?.index ?? said.length - this.#held.length);
    const text = end === null ? "" : said.slice(end.index + end[0].length);
    return { thoughts: thoughts.replace(opening, ""), text };
  }
}

function hasMark(said: JsonObject): boolean {
  const extra = objectOf(said["extra_content"]);
  return extra !== undefined && objectOf(extra["google"])?.["thought"] === true;
}
