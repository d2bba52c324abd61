import type { RandomBytes } from "../domain/keys/base62.ts";

const idBytes = 16;
const timeBytes = 6;
const countBytes = 2;
const lastCount = 2 ** (8 * countBytes) - 1;

/**
 * Makes ids of `req_` and 32 hexadecimal digits: the time in milliseconds, a count within that
 * millisecond, then 64 random bits. Time and count first keep ledger rows in index order, so that a
 * batch changes few pages of the database, and list the calls of one process in the order of their
 * arrival.
 */
export function requestIds(now: () => number, random: RandomBytes): () => string {
  let timeMs = -1;
  let count = 0;
  return () => {
    const nowMs = Math.floor(now());
    count = nowMs === timeMs ? Math.min(count + 1, lastCount) : 0;
    timeMs = nowMs;
    const bytes = Buffer.alloc(idBytes);
    random(bytes);
    bytes.writeUIntBE(timeMs, 0, timeBytes);
    bytes.writeUIntBE(count, timeBytes, countBytes);
    return `req_${bytes.toString("hex")}`;
  };
}
