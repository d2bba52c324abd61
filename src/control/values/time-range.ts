import { invalidField } from "../operation/refusals.ts";

const unitMs = { m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** Milliseconds since the epoch, from `2027-01-31T00:00:00Z` or an age such as `30m`. */
export function readTime(text: string, param: string, now: number): number {
  const [, count, unit] = /^([1-9][0-9]{0,6})([mhd])$/.exec(text) ?? [];
  if (count !== undefined && (unit === "m" || unit === "h" || unit === "d")) {
    return now - Number(count) * unitMs[unit];
  }
  const isTime = /^[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T[0-9:.]{5,12}(?:Z|[+-][0-9]{2}:[0-9]{2}))?$/.test(
    text,
  );
  const time = isTime ? Date.parse(text) : Number.NaN;
  if (!Number.isNaN(time)) return time;
  throw invalidField(
    param,
    "use a time such as 2027-01-31T00:00:00Z, or an age such as 30m, 12h or 7d",
  );
}

export interface TimeRange {
  readonly since: number;
  readonly until: number;
}

/** The time range of a report, by default the last day. Throws 400 if it ends before it begins. */
export function readRange(
  query: { readonly since?: string | undefined; readonly until?: string | undefined },
  now: number,
): TimeRange {
  const until = query.until === undefined ? now : readTime(query.until, "until", now);
  const since = query.since === undefined ? until - unitMs.d : readTime(query.since, "since", now);
  if (since < until) return { since, until };
  throw invalidField("since", "use a time before `until`");
}
