import { brokenAnswer } from "../errors/upstream-failure.ts";

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

/**
 * Reads base64 of little-endian floats. Some servers insert line breaks, or leave out the padding.
 * Throws a broken answer for anything else.
 */
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
