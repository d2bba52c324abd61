/**
 * Request fields that were changed for the upstream, by name: `dropped`, or the value sent instead,
 * a number or one word. They are sent to the caller in a header, so no name or word may come from
 * the request.
 */
export type AdjustedFields = ReadonlyMap<string, string | number>;

export const nothingAdjusted: AdjustedFields = new Map();
