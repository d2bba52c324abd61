const format = (options: Intl.DateTimeFormatOptions) => new Intl.DateTimeFormat(undefined, options);
const day = { month: "short", day: "numeric" } as const;
const minute = { hour: "2-digit", minute: "2-digit" } as const;

const absolute = format({ dateStyle: "medium", timeStyle: "short" });
const exact = format({ dateStyle: "full", timeStyle: "long" });
const short = format({ ...day, ...minute });
const toTheSecond = format({ ...day, ...minute, second: "2-digit" });
const utcDay = format({ ...day, timeZone: "UTC" });
const clock = format(minute);
const relative = new Intl.RelativeTimeFormat(undefined, { numeric: "auto" });

const units = [
  ["day", 86_400_000],
  ["hour", 3_600_000],
  ["minute", 60_000],
  ["second", 1_000],
] as const;

/** "3 hours ago"; never in the future, when the clock of the gateway is ahead. */
export function ago(at: string | number, now = Date.now()): string {
  return distanceText(Math.min(0, new Date(at).getTime() - now));
}

/** "3 hours ago", "in 2 days". */
function distanceText(passed: number): string {
  const [unit, length] = units.find(([, each]) => Math.abs(passed) >= each) ?? ["second", 1_000];
  return relative.format(Math.trunc(passed / length), unit);
}

/** In the viewer's zone. */
export function instantText(at: string | number): string {
  return short.format(new Date(at));
}

export function clockText(at: number): string {
  return clock.format(new Date(at));
}

/** Days of usage begin at midnight UTC. */
export function utcDayText(at: number): string {
  return utcDay.format(new Date(at));
}

/** The viewer's zone, such as "GMT+1". */
export function zoneText(): string {
  const parts = format({ timeZoneName: "short" }).formatToParts();
  return parts.find(({ type }) => type === "timeZoneName")?.value ?? "";
}

/** An instant in the viewer's zone; the title has zone, UTC and how long ago. */
export function Time({
  at,
  isRelative = false,
  isExact = false,
  none = "never",
}: {
  readonly at: string | null | undefined;
  readonly isRelative?: boolean;
  /** With seconds. */
  readonly isExact?: boolean;
  readonly none?: string;
}) {
  if (at === null || at === undefined) return <span className="muted">{none}</span>;
  const date = new Date(at);
  return (
    <time
      dateTime={at}
      title={`${exact.format(date)}\n${at}\n${distanceText(date.getTime() - Date.now())}`}
    >
      {isRelative ? ago(at) : (isExact ? toTheSecond : absolute).format(date)}
    </time>
  );
}

/** Milliseconds below a second, then seconds with three digits. */
export function durationText(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  return `${(ms / 1_000).toPrecision(3)} s`;
}

/** A span of seconds in the largest unit that divides it: "24 hours", "7 days". */
export function spanText(seconds: number): string {
  for (const [unit, length] of units) {
    const count = (seconds * 1_000) / length;
    if (count >= 1 && Number.isInteger(count) && !(unit === "day" && count === 1)) {
      return `${count} ${unit}${count === 1 ? "" : "s"}`;
    }
  }
  return `${seconds} seconds`;
}
