import type { Clock } from "../../domain/clock.ts";
import { LoopDelay } from "./loop-delay.ts";

/** How often the event loop's delay is measured. */
const measureMs = 20;

/** Measures how late a timer runs. `start` it, and `stop` it when the process ends. */
export class LoopMeter {
  readonly delay = new LoopDelay();
  readonly #clock: Pick<Clock, "monotonic" | "schedule">;
  readonly #onMeasured: (now: number) => void;
  /** When the next measurement is due. */
  #dueAt = Number.POSITIVE_INFINITY;
  #cancel: (() => void) | undefined;

  constructor(
    clock: Pick<Clock, "monotonic" | "schedule">,
    onMeasured: (now: number) => void = () => undefined,
  ) {
    this.#clock = clock;
    this.#onMeasured = onMeasured;
  }

  /** The longest delay of the last five to ten seconds. */
  get longestMs(): number {
    return this.delay.longestMs(this.#clock.monotonic());
  }

  get ofLastMinute(): ReturnType<LoopDelay["ofLastMinute"]> {
    return this.delay.ofLastMinute(this.#clock.monotonic());
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
      this.delay.add(Math.max(0, this.lateMs(now)), now);
      this.#onMeasured(now);
      this.start();
    }, measureMs);
  }

  stop(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    this.#dueAt = Number.POSITIVE_INFINITY;
  }
}
