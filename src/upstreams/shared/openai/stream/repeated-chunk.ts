import type { ChatEvent } from "../../../../domain/chat/answer.ts";
import { isObject, listOf, objectOf } from "../../../../domain/json-fields.ts";
import { readJsonText } from "../../../../domain/json-object.ts";

type TextDelta = Extract<ChatEvent, { type: "text-delta" }>;

/**
 * Limit on attempts to learn the form: servers that vary other fields, such as padding, never
 * repeat it.
 */
const mostLessons = 8;
const contentStart = /"content"\s*:\s*"/;

/**
 * Reads chunks that differ from an earlier one only in their text, as most chunks of a stream do:
 * the rest is compared, and only the text is parsed.
 */
export class RepeatedChunk {
  #lessons = 0;
  /** The JSON before and after the text; undefined until it is known. */
  #known:
    { readonly before: string; readonly after: string; readonly event: TextDelta } | undefined;

  /** The next text may have to be read in another way. */
  forget(): void {
    this.#known = undefined;
  }

  /** Undefined for data that must be parsed as a whole. */
  read(data: string): TextDelta | undefined {
    if (this.#known === undefined) return undefined;
    const { before, after, event } = this.#known;
    const end = data.length - after.length;
    if (end <= before.length || !data.startsWith(before) || !data.endsWith(after)) return undefined;
    const text = readJsonText(data.slice(before.length, end));
    // An empty text has no event.
    if (text === undefined || text === "") return undefined;
    const { choice, extra } = event;
    const delta: TextDelta = { type: "text-delta", choice, text };
    return extra === undefined ? delta : { ...delta, extra };
  }

  /**
   * Learns from a chunk in the middle of an answer; `events` are all events that `data` contains,
   * with no field of an earlier chunk.
   */
  learn(data: string, events: readonly ChatEvent[]): void {
    const [event] = events;
    if (this.#lessons >= mostLessons || events.length !== 1) return;
    if (event?.type !== "text-delta" || event.logprobs !== undefined) return;
    this.#lessons += 1;
    const found = contentStart.exec(data);
    const literal = JSON.stringify(event.text);
    const at = found === null ? -1 : found.index + found[0].length - 1;
    if (!data.startsWith(literal, at)) return;
    const before = data.slice(0, at);
    const after = data.slice(at + literal.length);
    // The match may be another field of the same name.
    if (textOf(`${before}"${otherText}"${after}`) !== otherText) return;
    this.#known = { before, after, event };
  }
}

const otherText = "another text";

/** The field that holds the text of a chunk. */
function textOf(data: string): unknown {
  const value: unknown = JSON.parse(data);
  const choice = isObject(value) ? listOf(value["choices"])?.[0] : undefined;
  return isObject(choice) ? objectOf(choice["delta"])?.["content"] : undefined;
}
