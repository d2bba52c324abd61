/**
 * Fields of a caller's request that an upstream got otherwise than they were written, by name: `dropped`,
 * or what was sent in their place, as a number or one word. Callers are told in a header, so neither
 * names nor words may be the caller's own.
 */
export type AdjustedFields = ReadonlyMap<string, string | number>;

export const nothingAdjusted: AdjustedFields = new Map();
