import type { ChatChoice, ChatResult } from "../../domain/chat/chat.ts";
import { brokenAnswer, type UpstreamFailure } from "../../domain/errors/upstream-failure.ts";
import { AnsweredParts } from "../answered-parts.ts";

/** The finished choices of a call. */
export class ChoiceProgress extends AnsweredParts<ChatChoice> {
  #first: ChatResult | undefined;

  /** `result` has a choice for each of `indexes`, in order; throws `broken-answer` if not. */
  addResult(indexes: readonly number[], result: ChatResult): void {
    this.#first ??= result;
    const choices = indexes.flatMap((index, position) => {
      const choice = result.choices[position];
      return choice === undefined ? [] : [{ ...choice, index }];
    });
    this.add(indexes, choices, result.usage);
    const missing = this.missing();
    if (indexes.some((index) => missing.includes(index))) throw noChoice();
  }

  /** Valid once nothing is missing. */
  result(): ChatResult {
    const { all: choices, usage } = this;
    const { systemFingerprint, serviceTier, extra } = this.#first ?? {};
    return { choices, usage, systemFingerprint, serviceTier, extra };
  }
}

export function noChoice(): UpstreamFailure {
  return brokenAnswer("the answer had no choice");
}
