import type { TokenUsage } from "../usage/usage.ts";

/** What one vector is made of: a text, the token ids of one, or texts and images together. */
export type EmbeddingInput = TextInput | EmbeddingContent;

/** One text, or the token ids of one text. A text may also be an image as a data URL. */
export type TextInput = string | readonly number[];

/** Texts and images that are one input, as several peers write them. At least one part. */
export interface EmbeddingContent {
  readonly content: readonly EmbeddingPart[];
}

export type EmbeddingPart =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "image_url"; readonly image_url: { readonly url: string } };

export function isContent(input: EmbeddingInput): input is EmbeddingContent {
  return typeof input === "object" && "content" in input;
}

/** Whether a text is an image for the models that take images. */
export function isImageText(text: string): boolean {
  return /^data:image\//i.test(text);
}

/** The canonical embeddings form: inputs as a list, whatever the caller sent. */
export interface EmbeddingRequest {
  readonly model: string;
  readonly inputs: readonly EmbeddingInput[];
  readonly dimensions: number | undefined;
  readonly user: string | undefined;
  /** What the vectors are for, in the caller's words; not OpenAI's field. */
  readonly inputType?: string | undefined;
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
