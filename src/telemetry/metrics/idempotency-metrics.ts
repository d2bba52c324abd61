import type { AnswerResult } from "../../domain/idempotency-settings.ts";
import { Counter, type CounterSeries } from "./counter.ts";

/** Counts answers to calls with an `Idempotency-Key`. */
export class IdempotencyMetrics {
  readonly #answers = new Counter({
    name: "sluice_idempotent_answers_total",
    help:
      "Answers to calls with an Idempotency-Key: stored, too_large to be stored with what they say, " +
      "evicted to make room for others, replayed, or joined while they came.",
    labelNames: ["result"],
  });
  /** Created at the start, so that the first count is an increase and not a new series. */
  readonly #series: Readonly<Record<AnswerResult, CounterSeries>> = {
    stored: this.#answers.series(["stored"]),
    too_large: this.#answers.series(["too_large"]),
    evicted: this.#answers.series(["evicted"]),
    replayed: this.#answers.series(["replayed"]),
    joined: this.#answers.series(["joined"]),
  };

  readonly counted = (result: AnswerResult, amount = 1): void => {
    this.#series[result].add(amount);
  };

  render(): string {
    return this.#answers.render();
  }
}
