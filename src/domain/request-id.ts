import type { RandomBytes } from "./keys/base62.ts";

const idBytes = 16;
const timeBytes = 6;

/**
 * `req_` and 32 hexadecimal digits: the time in milliseconds, then 80 random bits. Ids that begin
 * with the time keep the rows of the ledger in the order of its index, so that a batch of them
 * changes a few pages of the database and not one page each.
 */
export function createRequestId(nowMs: number, random: RandomBytes): string {
  const bytes = Buffer.alloc(idBytes);
  random(bytes);
  bytes.writeUIntBE(Math.floor(nowMs), 0, timeBytes);
  return `req_${bytes.toString("hex")}`;
}
