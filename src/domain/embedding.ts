import type { TokenUsage } from "./usage.ts";

/** One text, or the token ids of one text. */
export type EmbeddingInput = string | readonly number[];

/** The canonical embeddings form: inputs as a list, whatever the caller sent. */
export interface EmbeddingRequest {
  readonly model: string;
  readonly inputs: readonly EmbeddingInput[];
  readonly dimensions: number | undefined;
  readonly user: string | undefined;
  /** The caller's whole body, of which an adapter sends what its operator named beside these. */
  readonly sent?: Readonly<Record<string, unknown>>;
  /** What the caller gets; asking the upstream for the same saves transcoding. */
  readonly encodingFormat: "float" | "base64";
}

/** Vectors in the order of the inputs. An adapter keeps them as the upstream sent them. */
export interface EmbeddingResult {
  readonly vectors: readonly EmbeddingVector[];
  readonly usage: TokenUsage | undefined;
}

/** Numbers, or the base64 text of little-endian float32 values. */
export type EmbeddingVector = readonly number[] | string;
