import type { TokenUsage } from "../domain/usage/usage.ts";
import { sumReported, sumUsage } from "./metering/call-usage.ts";

/** The answered choices or inputs of a call. Outlives attempts, so that none is asked for twice. */
export class AnsweredParts<Part> {
  readonly #parts: (Part | undefined)[];
  readonly #usages: (TokenUsage | undefined)[] = [];

  constructor(count: number) {
    this.#parts = Array.from({ length: count });
  }

  /** Indexes of the unanswered parts, ascending. */
  missing(): readonly number[] {
    return [...this.#parts.keys()].filter((index) => this.#parts[index] === undefined);
  }

  /** The part that is missing, from 0 to 1. */
  unanswered(): number {
    return this.missing().length / this.#parts.length;
  }

  /** `parts` are those of `indexes`, in order. Parts that a hedge answered twice count once. */
  add(indexes: readonly number[], parts: readonly Part[], usage: TokenUsage | undefined): void {
    if (indexes.every((index) => this.#parts[index] !== undefined)) return;
    this.#usages.push(usage);
    for (const [place, index] of indexes.entries()) {
      this.#parts[index] = parts[place] ?? this.#parts[index];
    }
  }

  /** One that was answered; undefined before the first answer. */
  get first(): Part | undefined {
    return this.#parts.find((part) => part !== undefined);
  }

  get all(): readonly Part[] {
    return this.#parts.filter((part) => part !== undefined);
  }

  /** Usage of the answered parts that was reported. */
  get reportedUsage(): TokenUsage | undefined {
    return sumReported(this.#usages);
  }

  /** Undefined unless the usage of every part was reported. */
  get usage(): TokenUsage | undefined {
    return sumUsage(this.#usages);
  }
}
