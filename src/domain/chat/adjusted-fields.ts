/**
 * Request fields that were changed for the upstream: by name, `dropped` or the value sent instead,
 * which is a number or one word. A header tells the caller, so no name or word may come from the
 * request.
 */
export type AdjustedFields = ReadonlyMap<string, string | number>;

export const nothingAdjusted: AdjustedFields = new Map();
