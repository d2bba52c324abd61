import type { TokenUsage } from "../usage/usage.ts";
import type { EmbeddingVector } from "./embedding-vector.ts";

/** The input of one vector: a text, its token ids, or texts and images together. */
export type EmbeddingInput = TextInput | EmbeddingContent;

/** A text or its token ids. A text may be an image as a data URL. */
export type TextInput = string | readonly number[];

/** Texts and images that form one input. At least one part. */
export interface EmbeddingContent {
  readonly content: readonly EmbeddingPart[];
}

export type EmbeddingPart =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "image_url"; readonly image_url: { readonly url: string } };

export function isContent(input: EmbeddingInput): input is EmbeddingContent {
  return typeof input === "object" && "content" in input;
}

/** Whether a text is an image to models that accept images. */
export function isImageText(text: string): boolean {
  return /^data:image\//i.test(text);
}

/** The canonical embeddings form: inputs are always a list. */
export interface EmbeddingRequest {
  readonly model: string;
  readonly inputs: readonly EmbeddingInput[];
  readonly dimensions: number | undefined;
  readonly user: string | undefined;
  /** Purpose of the vectors as the caller named it; not an OpenAI field. */
  readonly inputType?: string | undefined;
  /** The caller's whole body; an adapter also sends those of its fields that the operator named. */
  readonly sent?: Readonly<Record<string, unknown>>;
  /** The format that the caller asked for; undefined: none, so it gets floats. */
  readonly encodingFormat: "float" | "base64" | undefined;
}

/** Vectors in the order of the inputs. */
export interface EmbeddingResult {
  readonly vectors: readonly EmbeddingVector[];
  readonly usage: TokenUsage | undefined;
}
