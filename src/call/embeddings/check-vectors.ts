import type { EmbeddingResult } from "../../domain/chat/embedding.ts";
import { UpstreamFailure } from "../../domain/errors/upstream-failure.ts";

export interface WantedVectors {
  readonly count: number;
  /** The length that the caller asked for. */
  readonly dimensions: number | undefined;
  /** The length of the vectors that the call already has. */
  readonly length: number | undefined;
}

/** Throws a broken answer for vectors that are not one for each input, all of the wanted length. */
export function checkVectors(
  { vectors, usage }: EmbeddingResult,
  { count, dimensions, length: before }: WantedVectors,
): void {
  const broken = (message: string, hint?: string): UpstreamFailure =>
    new UpstreamFailure({ kind: "broken-answer", message, hint, usage });
  if (vectors.length !== count) {
    throw broken(`the upstream returned ${vectors.length} vectors for ${count} inputs`);
  }
  const wanted = dimensions ?? before ?? vectors[0]?.length;
  const other = vectors.find(({ length }) => length !== wanted);
  if (other === undefined) return;
  const message = `the upstream returned a vector of ${other.length} numbers instead of ${wanted}`;
  if (dimensions !== undefined) throw broken(message, ignoredDimensions);
  throw broken(message, before === undefined ? undefined : otherLengths);
}

const ignoredDimensions =
  "the caller asked for `dimensions`, which the model does not support or the server ignores";

const otherLengths =
  "a part of the call was answered with vectors of another length: all targets of a model must be " +
  "the same model";
