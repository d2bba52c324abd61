/** Types by their numbers in the server's catalogue, `pg_type`. */
const [BOOL, BYTEA] = [16, 17];
const [INT8, INT2, INT4, FLOAT4, FLOAT8, NUMERIC] = [20, 21, 23, 700, 701, 1700];

/**
 * Whole numbers are read as numbers: counts and milliseconds stay far below 2^53. The driver would
 * return `bigint`, and sums of it, as text.
 */
const numbers: ReadonlySet<number> = new Set([FLOAT4, FLOAT8, INT2, INT4, INT8, NUMERIC]);

/** Reads the values of the column types that Sluice uses. */
export const valueParsers = {
  getTypeParser(type: number): (text: string) => string | number | boolean | Uint8Array {
    if (numbers.has(type)) return Number;
    if (type === BYTEA) return readBytes;
    return type === BOOL ? (text) => text === "t" : (text) => text;
  },
};

/** Written by the server as `\x` and hexadecimal digits. */
function readBytes(text: string): Uint8Array {
  return Uint8Array.fromHex(text.slice(2));
}
