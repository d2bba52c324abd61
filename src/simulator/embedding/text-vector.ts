import { hashText } from "../answer/random.ts";

const wordWeight = 2;
const gramWeight = 1;
const gramLength = 3;

/**
 * A unit vector for a text. Each word and each sequence of three letters changes a few dimensions,
 * chosen by its hash, so texts that share words and spellings have similar vectors.
 */
export function textVector(text: string, dimensions: number): Float32Array<ArrayBuffer> {
  const vector = new Float32Array(dimensions);
  for (const [word] of text.toLowerCase().matchAll(/[\p{L}\p{N}]+/gu)) {
    addFeature(vector, `w:${word}`, wordWeight);
    const padded = ` ${word} `;
    for (let start = 0; start + gramLength <= padded.length; start++) {
      addFeature(vector, padded.slice(start, start + gramLength), gramWeight);
    }
  }
  return normalised(vector, text);
}

/** A unit vector for token ids, in which equal ids are equal features. */
export function tokenIdVector(
  ids: readonly number[],
  dimensions: number,
): Float32Array<ArrayBuffer> {
  const vector = new Float32Array(dimensions);
  for (const id of ids) addFeature(vector, `t:${id}`, wordWeight);
  return normalised(vector, ids.join(" "));
}

const changesPerFeature = 4;

function addFeature(vector: Float32Array, feature: string, weight: number): void {
  for (let change = 0; change < changesPerFeature; change++) {
    const hash = hashText(feature, change);
    const place = (hash >>> 1) % vector.length;
    vector[place] = (vector[place] ?? 0) + ((hash & 1) === 0 ? weight : -weight);
  }
}

function normalised(vector: Float32Array<ArrayBuffer>, text: string): Float32Array<ArrayBuffer> {
  const length = lengthOf(vector);
  if (length === 0) {
    // A text that consists of punctuation has no features, but needs a unit vector too.
    vector[hashText(text) % vector.length] = 1;
    return vector;
  }
  for (let place = 0; place < vector.length; place++) vector[place] = (vector[place] ?? 0) / length;
  return vector;
}

function lengthOf(vector: Float32Array): number {
  let total = 0;
  for (const value of vector) total += value * value;
  return Math.sqrt(total);
}
