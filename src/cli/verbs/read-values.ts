import { InvalidArgumentError } from "commander";
import { readDurationMs } from "../duration.ts";

/** Readers of option values. All throw `InvalidArgumentError`, with advice. */
export type ReadValue = (text: string) => unknown;

const dayMs = 86_400_000;

export function readCount(text: string): number {
  if (/^(?:0|[1-9][0-9]{0,14})$/.test(text)) return Number(text);
  throw new InvalidArgumentError("Use a whole number.");
}

export function limitUpTo(most: number): ReadValue {
  return (text) => {
    const count = readCount(text);
    if (count > 0 && count <= most) return count;
    const range = most === Infinity ? "1 or more" : `1 to ${most}`;
    throw new InvalidArgumentError(`It takes ${range}.`);
  };
}

export function readList(text: string): readonly string[] {
  const parts = text.split(",").map((part) => part.trim());
  return parts.filter((part) => part !== "");
}

/** A time such as `0s`, `30m`, `24h` or `7d`, in seconds. */
export function readSeconds(text: string): number {
  const durationMs = readDurationMs(text);
  if (durationMs !== undefined && durationMs <= 7 * dayMs) return durationMs / 1000;
  throw new InvalidArgumentError("Use a duration such as 30m or 24h, at most 7d.");
}

export function readDays(text: string): number {
  const days = (readDurationMs(text) ?? 0) / dayMs;
  if (Number.isInteger(days) && days >= 1 && days <= 365) return days;
  throw new InvalidArgumentError("Use whole days, from 1d to 365d.");
}

/**
 * A duration that starts with the change, for the field `..._in_seconds` that belongs to `..._at`.
 */
export class FromNow {
  readonly seconds: number;

  constructor(seconds: number) {
    this.seconds = seconds;
  }
}

/**
 * A future time as ISO 8601, from a date or an ISO time. A duration is kept as a duration, so that
 * a repeated command sends the same request.
 */
export function readTime(text: string): string | FromNow {
  const durationMs = readDurationMs(text);
  if (durationMs !== undefined) return new FromNow(durationMs / 1000);
  const timeMs = timePattern.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isFinite(timeMs)) return new Date(timeMs).toISOString();
  throw new InvalidArgumentError(
    "Use a date (2026-11-21), a time with its zone (2026-11-21T09:00Z), or a distance (30m, 24h, 7d).",
  );
}

const timePattern = /^\d{4}-\d\d-\d\d(?:T[\d:.]+(?:Z|[+-]\d\d:\d\d))?$/;
