import { hashText } from "../answer/random.ts";

const wordWeight = 2;
const gramWeight = 1;
const gramLength = 3;

/**
 * A unit vector for a text. Words and three-letter pieces each push a few dimensions, which ones
 * and in which direction is their hash: texts that share words and spellings point alike.
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

/** Token ids have no text: equal ids at least make equal features. */
export function tokenIdVector(
  ids: readonly number[],
  dimensions: number,
): Float32Array<ArrayBuffer> {
  const vector = new Float32Array(dimensions);
  for (const id of ids) addFeature(vector, `t:${id}`, wordWeight);
  return normalised(vector, ids.join(" "));
}

const pushesPerFeature = 4;

function addFeature(vector: Float32Array, feature: string, weight: number): void {
  for (let push = 0; push < pushesPerFeature; push++) {
    const hash = hashText(feature, push);
    const place = (hash >>> 1) % vector.length;
    vector[place] = (vector[place] ?? 0) + ((hash & 1) === 0 ? weight : -weight);
  }
}

function normalised(vector: Float32Array<ArrayBuffer>, text: string): Float32Array<ArrayBuffer> {
  const length = lengthOf(vector);
  if (length === 0) {
    // A text of punctuation has no features, and still must be a unit vector.
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
