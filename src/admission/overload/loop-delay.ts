import { encodeLatency, latenciesAt } from "../../domain/usage/latency-histogram.ts";

const spanMs = 5_000;
const minuteSpans = 60_000 / spanMs;

/** The delays of one span of time. */
interface Span {
  /** Its number, counted from the start of the clock. */
  readonly index: number;
  longestMs: number;
  /** Text of `domain/usage/latency-histogram.ts`. */
  delays: string;
}

/** The delay of the event loop, by samples of a timer. */
export class LoopDelay {
  #last = 0;
  #standing = 0;
  /** Those of the last minute, the newest last. */
  #spans: Span[] = [];

  /**
   * The shorter of the last two samples: a single pause, as for garbage collection, is not load.
   */
  get standingMs(): number {
    return this.#standing;
  }

  add(delayMs: number, now: number): void {
    this.#standing = Math.min(delayMs, this.#last);
    this.#last = delayMs;
    const span = this.#spanAt(now);
    span.longestMs = Math.max(span.longestMs, delayMs);
    span.delays += encodeLatency(delayMs);
  }

  /** The longest delay of the last five to ten seconds. */
  longestMs(now: number): number {
    return longestOf(this.#since(now, 2));
  }

  /** The longest delay of the last minute, and the one that 99 % of its samples do not exceed. */
  ofLastMinute(now: number): { readonly longestMs: number; readonly p99Ms: number } {
    const spans = this.#since(now, minuteSpans);
    const [p99Ms = 0] = latenciesAt(spans.map(({ delays }) => delays).join(""), [0.99]) ?? [];
    const longestMs = longestOf(spans);
    return { longestMs, p99Ms: Math.min(p99Ms, longestMs) };
  }

  #spanAt(now: number): Span {
    const last = this.#spans.at(-1);
    const index = Math.floor(now / spanMs);
    if (last?.index === index) return last;
    const span = { index, longestMs: 0, delays: "" };
    this.#spans = [...this.#since(now, minuteSpans), span];
    return span;
  }

  /** The last `count` spans, including the current one. */
  #since(now: number, count: number): readonly Span[] {
    const current = Math.floor(now / spanMs);
    return this.#spans.filter(({ index }) => index > current - count);
  }
}

function longestOf(spans: readonly Span[]): number {
  return Math.max(0, ...spans.map(({ longestMs }) => longestMs));
}
