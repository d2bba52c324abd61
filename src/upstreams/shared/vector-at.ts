import type { EmbeddingVector } from "../../domain/chat/embedding-vector.ts";
import { listOf, numberOf } from "./json-fields.ts";

/** The vector that stood at the place of this value in an answer; undefined if none did. */
export function vectorAt(
  value: unknown,
  vectors: readonly EmbeddingVector[],
): EmbeddingVector | undefined {
  const place = listOf(value);
  return place?.length === 1 ? vectors[numberOf(place[0]) ?? -1] : undefined;
}
