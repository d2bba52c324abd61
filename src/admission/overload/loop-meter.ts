import type { Clock } from "../../domain/clock.ts";
import { encodeLatency, latenciesAt } from "../../domain/usage/latency-histogram.ts";

const measureMs = 20;
const spanMs = 5_000;
const minuteSpans = 60_000 / spanMs;

interface Span {
  /** Its number, counted from the start of the clock. */
  readonly index: number;
  longestMs: number;
  /** Text of `domain/usage/latency-histogram.ts`. */
  delays: string;
}

/** Measures how late a timer runs. `start` it, and `stop` it when the process ends. */
export class LoopMeter {
  readonly #clock: Pick<Clock, "monotonic" | "schedule">;
  readonly #onMeasured: (now: number) => void;
  #dueAt = Number.POSITIVE_INFINITY;
  #cancel: (() => void) | undefined;
  #sampleMs = 0;
  #standingMs = 0;
  /** Those of the last minute, the newest last. */
  #spans: Span[] = [];

  constructor(
    clock: Pick<Clock, "monotonic" | "schedule">,
    onMeasured: (now: number) => void = () => undefined,
  ) {
    this.#clock = clock;
    this.#onMeasured = onMeasured;
  }

  /**
   * The shorter of the last two samples: a single pause, as for garbage collection, is not load.
   */
  get standingMs(): number {
    return this.#standingMs;
  }

  /** The longest delay of the last five to ten seconds. */
  get longestMs(): number {
    return longestOf(this.#newest(2));
  }

  /** The longest delay of the last minute, and the one that 99 % of its samples do not exceed. */
  get ofLastMinute(): { readonly longestMs: number; readonly p99Ms: number } {
    const spans = this.#newest(minuteSpans);
    const [p99Ms = 0] = latenciesAt(spans.map(({ delays }) => delays).join(""), [0.99]) ?? [];
    const longestMs = longestOf(spans);
    return { longestMs, p99Ms: Math.min(p99Ms, longestMs) };
  }

  /** How late the next measurement is already; negative before it is due. */
  lateMs(now: number): number {
    return now - this.#dueAt;
  }

  start(): void {
    const clock = this.#clock;
    this.#dueAt = clock.monotonic() + measureMs;
    this.#cancel = clock.schedule(() => {
      const now = clock.monotonic();
      this.add(Math.max(0, this.lateMs(now)));
      this.#onMeasured(now);
      this.start();
    }, measureMs);
  }

  stop(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    this.#dueAt = Number.POSITIVE_INFINITY;
  }

  add(delayMs: number): void {
    this.#standingMs = Math.min(delayMs, this.#sampleMs);
    this.#sampleMs = delayMs;
    const index = Math.floor(this.#clock.monotonic() / spanMs);
    let span = this.#spans.at(-1);
    if (span?.index !== index) {
      span = { index, longestMs: 0, delays: "" };
      this.#spans = [...this.#newest(minuteSpans), span];
    }
    span.longestMs = Math.max(span.longestMs, delayMs);
    span.delays += encodeLatency(delayMs);
  }

  /** The last `count` spans, including the current one. */
  #newest(count: number): readonly Span[] {
    const current = Math.floor(this.#clock.monotonic() / spanMs);
    return this.#spans.filter(({ index }) => index > current - count);
  }
}

function longestOf(spans: readonly Span[]): number {
  return Math.max(0, ...spans.map(({ longestMs }) => longestMs));
}
