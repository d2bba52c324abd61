import type { RandomBytes } from "./keys/base62.ts";

const idBytes = 16;
const timeBytes = 6;

/**
 * `req_` and 32 hexadecimal digits: the time in milliseconds, then 80 random bits. Time first keeps
 * ledger rows in index order, so that a batch changes few pages of the database.
 */
export function createRequestId(nowMs: number, random: RandomBytes): string {
  const bytes = Buffer.alloc(idBytes);
  random(bytes);
  bytes.writeUIntBE(Math.floor(nowMs), 0, timeBytes);
  return `req_${bytes.toString("hex")}`;
}
