import type { AnswerHeaders } from "../adapter.ts";

/** The wait in milliseconds from `retry-after-ms` or `retry-after` (seconds, or an HTTP date). */
export function readRetryAfter(headers: AnswerHeaders, nowMs: number): number | undefined {
  const precise = Number(headers.get("retry-after-ms") ?? Number.NaN);
  if (precise >= 0) return precise;
  const value = headers.get("retry-after");
  if (value === null) return undefined;
  const seconds = Number(value);
  if (seconds >= 0) return seconds * 1_000;
  const waitMs = Date.parse(value) - nowMs;
  return waitMs >= 0 ? waitMs : undefined;
}
