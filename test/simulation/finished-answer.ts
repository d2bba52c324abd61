import type { Attempt } from "./records.ts";

/** How long gateways await the count of a finished answer without a caller. */
export const usageTimeoutMs = 5_000;

/** The earliest time at which the upstream has sent everything except its count. */
export function finishedAt({ startedAt, script }: Attempt): number {
  let at = startedAt + script.headersAfterMs;
  let missingBytes = script.finishedBytes;
  for (const { afterMs, bytes } of script.pieces) {
    at += afterMs;
    missingBytes -= bytes.length;
    if (missingBytes <= 0) return at;
  }
  return Number.POSITIVE_INFINITY;
}
