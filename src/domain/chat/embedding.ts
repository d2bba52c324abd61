import type { TokenUsage } from "../usage/usage.ts";
import { brokenAnswer } from "../errors/upstream-failure.ts";
import { releaseBytes } from "./bytes.ts";

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

export function countImages(inputs: readonly EmbeddingInput[]): number {
  let images = 0;
  for (const input of inputs) {
    if (typeof input === "string") images += isImageText(input) ? 1 : 0;
    else if (isContent(input)) {
      images += input.content.filter(({ type }) => type === "image_url").length;
    }
  }
  return images;
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

/**
 * One vector: base64 as its upstream wrote it, which most callers get unchanged, or numbers. Doubles
 * only where the upstream's text has more digits than a float.
 */
export class EmbeddingVector {
  /** How many numbers. */
  readonly length: number;
  readonly #content: string | Float32Array<ArrayBuffer> | Float64Array<ArrayBuffer>;

  /** Numbers, or padded base64 of as many floats. */
  constructor(content: string | Float32Array<ArrayBuffer> | Float64Array<ArrayBuffer>) {
    this.#content = content;
    this.length = typeof content === "string" ? floatsIn(content) : content.length;
  }

  get isBase64(): boolean {
    return typeof this.#content === "string";
  }

  /** What it takes in memory. */
  get byteLength(): number {
    return typeof this.#content === "string" ? this.#content.length : this.#content.byteLength;
  }

  get numbers(): Float32Array<ArrayBuffer> | Float64Array<ArrayBuffer> {
    const content = this.#content;
    return typeof content === "string" ? decoded(content) : content;
  }

  /** Padded base64 of little-endian floats, as OpenAI's clients decode it. */
  get base64(): string {
    const content = this.#content;
    if (typeof content === "string") return content;
    const floats = content instanceof Float32Array ? content : new Float32Array(content);
    return new Uint8Array(floats.buffer).toBase64();
  }

  /** Frees its memory at once where the runtime can. Nobody may read it afterwards. */
  release(): void {
    if (typeof this.#content !== "string") releaseBytes(this.#content);
  }
}

/** Throws a broken answer for numbers that are no floats. */
export function vectorOfNumbers(numbers: readonly number[]): EmbeddingVector {
  const floats = new Float32Array(numbers);
  requireFinite(new Int32Array(floats.buffer));
  for (let index = 0; index < floats.length; index += 1) {
    if (floats[index] !== numbers[index]) return new EmbeddingVector(new Float64Array(numbers));
  }
  return new EmbeddingVector(floats);
}

/** Checks vectors in base64, all in the same memory: those of an answer are equally long. */
export class Base64Vectors {
  #bytes = new Uint8Array(0);
  #words = new Int32Array(0);

  /** Little-endian floats, with line breaks or without padding; throws a broken answer otherwise. */
  read(base64: string): EmbeddingVector {
    const size = Math.ceil((base64.length * 3) / 4);
    if (this.#bytes.length < size) {
      this.#words = new Int32Array(Math.ceil(size / 4));
      this.#bytes = new Uint8Array(this.#words.buffer);
    }
    const written = this.#decode(base64);
    if (written === 0 || written % Float32Array.BYTES_PER_ELEMENT !== 0) {
      throw brokenAnswer(`the base64 of a vector has ${written} bytes, so it is cut short`);
    }
    requireFinite(this.#words, written / Float32Array.BYTES_PER_ELEMENT);
    const isPlain = base64.length === Math.ceil(written / 3) * 4 && isPadded(base64, written);
    return new EmbeddingVector(isPlain ? base64 : this.#bytes.subarray(0, written).toBase64());
  }

  #decode(base64: string): number {
    try {
      return this.#bytes.setFromBase64(base64).written;
    } catch (error) {
      throw brokenAnswer("a vector is not base64", error);
    }
  }
}

/** Whether the padding is whole; then a text of the right length has no white space either. */
function isPadded(base64: string, bytes: number): boolean {
  return base64.endsWith(["", "==", "="][bytes % 3] ?? "");
}

function floatsIn(base64: string): number {
  const padding = base64.endsWith("==") ? 2 : base64.endsWith("=") ? 1 : 0;
  return ((base64.length / 4) * 3 - padding) / Float32Array.BYTES_PER_ELEMENT;
}

function decoded(base64: string): Float32Array<ArrayBuffer> {
  return new Float32Array(Uint8Array.fromBase64(base64).buffer);
}

/** All bits of the exponent: infinity, or no number. */
const exponent = 0x7f800000;

/** `words`: the bits of floats. */
function requireFinite(words: Int32Array, count = words.length): void {
  for (let index = 0; index < count; index += 1) {
    if (((words[index] ?? 0) & exponent) === exponent) {
      throw brokenAnswer("a vector has a value that is not a finite number");
    }
  }
}
