import type { ChatChoice, ChatResult } from "../../domain/chat/chat.ts";
import { UpstreamFailure } from "../../domain/errors/upstream-failure.ts";
import type { TokenUsage } from "../../domain/usage/usage.ts";
import { sumReported, sumUsage } from "../metering/sum-usage.ts";

/** Finished choices of a call. Outlives attempts, so that no choice is generated twice. */
export class ChoiceProgress {
  readonly #choices: (ChatChoice | undefined)[];
  readonly #results: ChatResult[] = [];

  constructor(choices: number) {
    this.#choices = Array.from({ length: choices });
  }

  /** Indexes of the unanswered choices, ascending. */
  missing(): readonly number[] {
    return [...this.#choices.keys()].filter((index) => this.#choices[index] === undefined);
  }

  /**
   * `result` has a choice for each of `indexes`, in order; throws `broken-answer` if not. Choices
   * that a hedge answered twice count once.
   */
  add(indexes: readonly number[], result: ChatResult): void {
    if (indexes.every((index) => this.#choices[index] !== undefined)) return;
    this.#results.push(result);
    for (const [position, index] of indexes.entries()) {
      const choice = result.choices[position];
      if (choice === undefined) throw noChoice();
      this.#choices[index] = { ...choice, index };
    }
  }

  /** Usage of the finished choices that was reported. */
  get reportedUsage(): TokenUsage | undefined {
    return sumReported(this.#results.map(({ usage }) => usage));
  }

  /** Valid once nothing is missing. */
  result(): ChatResult {
    const [first] = this.#results;
    return {
      choices: this.#choices.filter((choice) => choice !== undefined),
      usage: sumUsage(this.#results.map(({ usage }) => usage)),
      systemFingerprint: first?.systemFingerprint,
      serviceTier: first?.serviceTier,
    };
  }
}

export function noChoice(): UpstreamFailure {
  return new UpstreamFailure({ kind: "broken-answer", message: "the answer had no choice" });
}
