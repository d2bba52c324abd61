import type { EmbeddingResult, EmbeddingVector } from "../../domain/chat/embedding.ts";
import type { TokenUsage } from "../../domain/usage/usage.ts";
import { sumReported, sumUsage } from "../metering/sum-usage.ts";

/** Finished inputs of an embeddings call. Outlives attempts, so that no input is sent twice. */
export class EmbeddingProgress {
  readonly #vectors: (EmbeddingVector | undefined)[];
  readonly #usages: (TokenUsage | undefined)[] = [];

  constructor(inputs: number) {
    this.#vectors = Array.from({ length: inputs });
  }

  /** Indexes of the unanswered inputs, ascending. */
  missing(): readonly number[] {
    return [...this.#vectors.keys()].filter((index) => this.#vectors[index] === undefined);
  }

  /** `result` has a vector for each of `indexes`, in order. Those answered twice count once. */
  add(indexes: readonly number[], result: EmbeddingResult): void {
    if (indexes.every((index) => this.#vectors[index] !== undefined)) return;
    for (const [at, index] of indexes.entries()) this.#vectors[index] = result.vectors[at];
    this.#usages.push(result.usage);
  }

  /** Usage of the finished inputs that was reported. */
  get reportedUsage(): TokenUsage | undefined {
    return sumReported(this.#usages);
  }

  /** Valid once nothing is missing. */
  result(): EmbeddingResult {
    const vectors = this.#vectors.filter((vector) => vector !== undefined);
    return { vectors, usage: sumUsage(this.#usages) };
  }
}
