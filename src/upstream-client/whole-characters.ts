import type { ChatEvent } from "../domain/chat/answer.ts";
import { replaceHalves, replacement } from "../domain/chat/well-formed.ts";

/**
 * Keeps characters whole in a streamed answer. A character outside the basic plane has two halves,
 * and servers that cut by code units send them in two deltas. The first half waits for the second;
 * one that stays alone becomes U+FFFD.
 */
export class WholeCharacters {
  /** By text: a delta whose whole text is a first half. */
  readonly #waiting = new Map<string, Delta>();

  /** Returns `events` itself if nothing in it has to change. */
  join(events: readonly ChatEvent[]): readonly ChatEvent[] {
    if (this.#waiting.size === 0 && areWhole(events)) return events;
    const joined: ChatEvent[] = [];
    for (const event of events) {
      if (isDelta(event)) this.#joinDelta(event, joined);
      else {
        if (event.type === "choice-finish") this.#endTexts(event.choice, joined);
        replaceHalves(event);
        joined.push(event);
      }
    }
    return joined;
  }

  #joinDelta(delta: Delta, joined: ChatEvent[]): void {
    const key = keyOf(delta);
    const before = this.#waiting.get(key);
    let text = before === undefined ? textOf(delta) : textOf(before) + textOf(delta);
    this.#waiting.delete(key);
    const last = text.charCodeAt(text.length - 1);
    if (last >= firstHalf && last <= lastFirstHalf) {
      const {
        logprobs: _,
        extra: __,
        ...half
      } = { logprobs: undefined, extra: undefined, ...delta };
      this.#waiting.set(key, withText(half, text.slice(-1)));
      text = text.slice(0, -1);
    }
    const hasMore = "logprobs" in delta || "extra" in delta;
    if (hasMore) replaceHalves(beside(delta));
    if (text !== "" || hasMore) joined.push(withText(delta, text.toWellFormed()));
  }

  #endTexts(choice: number, joined: ChatEvent[]): void {
    for (const [key, half] of this.#waiting) {
      if (half.choice !== choice) continue;
      joined.push(withText(half, replacement));
      this.#waiting.delete(key);
    }
  }
}

type Delta = Extract<ChatEvent, { readonly type: `${string}-delta` }>;

const firstHalf = 0xd800;
const lastFirstHalf = 0xdbff;

function areWhole(events: readonly ChatEvent[]): boolean {
  for (const event of events) if (!isWhole(event)) return false;
  return true;
}

/** Whether an event can be passed on as it is; those that are rare are always looked through. */
function isWhole(event: ChatEvent): boolean {
  switch (event.type) {
    case "text-delta":
      return isPlain(event) && event.extra === undefined;
    case "refusal-delta":
      return isPlain(event);
    case "reasoning-delta":
      return event.text.isWellFormed();
    case "tool-call-delta":
      return event.extra === undefined && event.arguments.isWellFormed();
    case "function-call-delta":
      return event.arguments.isWellFormed();
    default:
      return false;
  }
}

function isPlain({ text, logprobs }: Extract<ChatEvent, { readonly logprobs?: unknown }>): boolean {
  return logprobs === undefined && text.isWellFormed();
}

function isDelta(event: ChatEvent): event is Delta {
  return "text" in event || "arguments" in event;
}

function textOf(delta: Delta): string {
  return "text" in delta ? delta.text : delta.arguments;
}

/** What a delta has beside its text. */
function beside(delta: Delta): object {
  const { logprobs, extra } = { logprobs: undefined, extra: undefined, ...delta };
  return { logprobs, extra };
}

function withText(delta: Delta, text: string): Delta {
  return "text" in delta ? { ...delta, text } : { ...delta, arguments: text };
}

function keyOf(delta: Delta): string {
  return `${delta.type} ${delta.choice} ${"call" in delta ? delta.call : ""}`;
}
