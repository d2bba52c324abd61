import type { ChatChoice, ChatResult } from "../../domain/chat/chat.ts";
import { UpstreamFailure } from "../../domain/errors/upstream-failure.ts";
import type { TokenUsage } from "../../domain/usage/usage.ts";
import { sumReported, sumUsage } from "../metering/sum-usage.ts";

/** What is done of a call for several choices. It outlives attempts: no choice is made twice. */
export class ChoiceProgress {
  readonly #choices: (ChatChoice | undefined)[];
  readonly #results: ChatResult[] = [];

  constructor(choices: number) {
    this.#choices = Array.from({ length: choices });
  }

  /** Indexes of the choices without an answer, in their order. */
  missing(): readonly number[] {
    return [...this.#choices.keys()].filter((index) => this.#choices[index] === undefined);
  }

  /**
   * `result` has a choice for each of `indexes`, in that order; throws `broken-answer` if not. What
   * a hedge has brought already counts once.
   */
  add(indexes: readonly number[], result: ChatResult): void {
    if (indexes.every((index) => this.#choices[index] !== undefined)) return;
    this.#results.push(result);
    for (const [place, index] of indexes.entries()) {
      const choice = result.choices[place];
      if (choice === undefined) throw noChoice();
      this.#choices[index] = { ...choice, index };
    }
  }

  /** Of what is done and was counted. */
  get reportedUsage(): TokenUsage | undefined {
    return sumReported(this.#results.map(({ usage }) => usage));
  }

  /** Meaningful when nothing is missing. */
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
