import type { EmbeddingResult, EmbeddingVector } from "../../domain/chat/embedding.ts";
import type { TokenUsage } from "../../domain/usage/usage.ts";
import { sumReported, sumUsage } from "../metering/sum-usage.ts";

/** What is done of an embeddings call. It outlives attempts: no input is sent again once answered. */
export class EmbeddingProgress {
  readonly #vectors: (EmbeddingVector | undefined)[];
  readonly #usages: (TokenUsage | undefined)[] = [];

  constructor(inputs: number) {
    this.#vectors = Array.from({ length: inputs });
  }

  /** Indexes of the inputs without an answer, in their order. */
  missing(): readonly number[] {
    return [...this.#vectors.keys()].filter((index) => this.#vectors[index] === undefined);
  }

  /** `result` has a vector for each of `indexes`, in that order. What a hedge brought counts once. */
  add(indexes: readonly number[], result: EmbeddingResult): void {
    if (indexes.every((index) => this.#vectors[index] !== undefined)) return;
    for (const [place, index] of indexes.entries()) this.#vectors[index] = result.vectors[place];
    this.#usages.push(result.usage);
  }

  /** Of what is done and was counted. */
  get reportedUsage(): TokenUsage | undefined {
    return sumReported(this.#usages);
  }

  /** Meaningful when nothing is missing. */
  result(): EmbeddingResult {
    const vectors = this.#vectors.filter((vector) => vector !== undefined);
    return { vectors, usage: sumUsage(this.#usages) };
  }
}
