import type { TokenUsage } from "../usage/usage.ts";
import { brokenAnswer } from "../errors/upstream-failure.ts";

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

/** The numbers of a vector. Doubles only where the upstream's text has more digits than a float. */
export type EmbeddingVector = Float32Array<ArrayBuffer> | Float64Array<ArrayBuffer>;

/** Throws a broken answer for numbers that are no floats. */
export function vectorOfNumbers(numbers: readonly number[]): EmbeddingVector {
  const floats = new Float32Array(numbers);
  requireFinite(floats);
  for (let index = 0; index < floats.length; index += 1) {
    if (floats[index] !== numbers[index]) return new Float64Array(numbers);
  }
  return floats;
}

/** Little-endian floats, with line breaks or without padding; throws a broken answer otherwise. */
export function vectorOfBase64(base64: string): EmbeddingVector {
  const bytes = bytesOf(base64);
  if (bytes.byteLength === 0 || bytes.byteLength % Float32Array.BYTES_PER_ELEMENT !== 0) {
    throw brokenAnswer(`the base64 of a vector has ${bytes.byteLength} bytes, so it is cut short`);
  }
  const floats = new Float32Array(bytes.buffer);
  requireFinite(floats);
  return floats;
}

/** Padded base64 of floats, as OpenAI's clients decode it. */
export function toBase64(vector: EmbeddingVector): string {
  const floats = vector instanceof Float32Array ? vector : new Float32Array(vector);
  return new Uint8Array(floats.buffer).toBase64();
}

function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  try {
    return Uint8Array.fromBase64(base64);
  } catch (error) {
    throw brokenAnswer("a vector is not base64", error);
  }
}

function requireFinite(floats: Float32Array): void {
  for (let index = 0; index < floats.length; index += 1) {
    if (!Number.isFinite(floats[index])) {
      throw brokenAnswer("a vector has a value that is not a finite number");
    }
  }
}
