import type { AttemptNote } from "../../domain/usage/call-routing.ts";
import { Counter } from "./counter.ts";
import { DurationHistogram } from "./duration-histogram.ts";

/** Attempts at targets: how they ended, and how long they took. */
export class AttemptMetrics {
  readonly #attempts = new Counter({
    name: "sluice_attempts_total",
    help: "Attempts at targets: answered, given-up, or the cause of the failure.",
    labelNames: ["target", "outcome"],
  });
  readonly #durations = new DurationHistogram({
    name: "sluice_attempt_duration_seconds",
    help: "Duration of attempts, to the end of the answer or the failure.",
    labelNames: ["target", "result"],
    bounds: [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300],
  });

  ended({ target, outcome, durationMs }: AttemptNote): void {
    this.#attempts.add([target, outcome], 1);
    const isEnd = outcome === "answered" || outcome === "given-up";
    this.#durations.series([target, isEnd ? outcome : "failed"]).observe(durationMs / 1_000);
  }

  render(): string {
    return `${this.#attempts.render()}\n${this.#durations.render()}`;
  }
}
