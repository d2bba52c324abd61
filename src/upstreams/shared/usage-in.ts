import { parseObject, type JsonObject } from "./json-fields.ts";

/** Longer than any provider's counts. */
const longestUsageBytes = 4_096;
const name = new TextEncoder().encode('"usage"');
const closingBrace = 0x7d;

/**
 * The last `usage` object in the bytes of a JSON answer that cannot be parsed, because it is broken
 * or too large. Text of the answer cannot pass for it: quotes are escaped there.
 */
export function usageIn(body: Uint8Array): JsonObject | undefined {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  const at = bytes.lastIndexOf(name);
  if (at === -1) return undefined;
  const rest = bytes.subarray(at + name.length, at + name.length + longestUsageBytes);
  const opening = /^\s*:\s*(?=\{)/.exec(rest.toString("latin1"))?.[0];
  if (opening === undefined) return undefined;
  // The object ends at one of the braces; details inside it have their own.
  for (
    let end = rest.indexOf(closingBrace);
    end !== -1;
    end = rest.indexOf(closingBrace, end + 1)
  ) {
    const usage = parseObject(rest.subarray(opening.length, end + 1));
    if (usage !== undefined) return usage;
  }
  return undefined;
}
