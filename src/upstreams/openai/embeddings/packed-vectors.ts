/** An answer without its base64 vectors. */
export interface UnpackedAnswer {
  /** The JSON, in which the position of its vector in `vectors` stands for each vector. */
  readonly json: string;
  readonly vectors: readonly string[];
}

const name = Buffer.from('"embedding"');
const colon = 0x3a;
const quote = 0x22;

/**
 * Takes the base64 vectors out of an answer, so that its megabytes are not parsed. Undefined if
 * there are none, or if a vector is not plain base64: such an answer is parsed as a whole.
 *
 * The name of a field ends with a quote that is not escaped, so a text that quotes such a field is
 * not mistaken for one.
 */
export function unpackVectors(body: Uint8Array): UnpackedAnswer | undefined {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  const parts: string[] = [];
  const vectors: string[] = [];
  let taken = 0;
  for (;;) {
    const named = bytes.indexOf(name, taken);
    if (named === -1) break;
    const value = valueOf(bytes, named + name.length);
    if (value === undefined) {
      // The name of an object's type, not of a field.
      parts.push(bytes.toString("utf8", taken, named + name.length));
      taken = named + name.length;
      continue;
    }
    const end = bytes[value] === quote ? bytes.indexOf(quote, value + 1) : -1;
    const vector = bytes.toString("latin1", value + 1, Math.max(end, value + 1));
    if (!isPaddedBase64(vector)) return undefined;
    parts.push(bytes.toString("utf8", taken, value), String(vectors.length));
    vectors.push(vector);
    taken = end + 1;
  }
  if (vectors.length === 0) return undefined;
  parts.push(bytes.toString("utf8", taken));
  return { json: parts.join(""), vectors };
}

/**
 * Where the value of a field begins whose name ends here; undefined if this is not a field's name.
 */
function valueOf(bytes: Uint8Array, nameEnd: number): number | undefined {
  const at = afterSpace(bytes, nameEnd);
  return bytes[at] === colon ? afterSpace(bytes, at + 1) : undefined;
}

function afterSpace(bytes: Uint8Array, from: number): number {
  let at = from;
  for (let byte = bytes[at]; byte !== undefined && whitespace.has(byte); byte = bytes[at]) at += 1;
  return at;
}

const whitespace: ReadonlySet<number> = new Set([0x20, 0x09, 0x0a, 0x0d]);

/** Filled only to check a text, never read. */
let scratch = new Uint8Array(8 * 1024);

function isPaddedBase64(text: string): boolean {
  if (text === "" || text.length % 4 !== 0) return false;
  if (scratch.length < text.length) scratch = new Uint8Array(text.length);
  const padding = text.endsWith("==") ? 2 : Number(text.endsWith("="));
  try {
    // It skips spaces, so a text with spaces decodes to less.
    return scratch.setFromBase64(text).written === (text.length / 4) * 3 - padding;
  } catch {
    return false;
  }
}
