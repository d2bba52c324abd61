import type { Budget, BudgetPeriod, PeriodTime } from "./budget.ts";

type Recurring = Exclude<BudgetPeriod, "total">;

/** What tells when the periods of a budget begin and end. */
export type PeriodRule = Pick<Budget, "period" | "timeZone" | "createdAt">;

/**
 * Periods of budgets by the local dates of their time zones: a day of a change to or from summer time
 * has 23 or 25 hours. Remembers the last period of each zone, because most questions are about now.
 */
export class Calendar {
  readonly #latest = new Map<string, Map<Recurring, PeriodTime>>();

  /** The period in which a time lies, in milliseconds since the epoch. */
  periodAt({ period, timeZone, createdAt }: PeriodRule, at: number): PeriodTime {
    if (period === "total") return { id: "total", startsAt: createdAt, endsAt: Infinity };
    const ofZone = this.#latest.get(timeZone) ?? new Map<Recurring, PeriodTime>();
    const latest = ofZone.get(period);
    if (latest !== undefined && at >= latest.startsAt && at < latest.endsAt) return latest;
    const found = findPeriod(period, timeZone, at);
    this.#latest.set(timeZone, ofZone.set(period, found));
    return found;
  }
}

function findPeriod(period: Recurring, timeZone: string, at: number): PeriodTime {
  const date = Temporal.Instant.fromEpochMilliseconds(Math.floor(at))
    .toZonedDateTimeISO(timeZone)
    .toPlainDate();
  let first = firstDate(period, date);
  for (;;) {
    const next = first.add(lengths[period]);
    const [startsAt, endsAt] = [startOf(first, timeZone), startOf(next, timeZone)];
    // A clock that is set back over midnight shows the date before once more.
    if (at >= endsAt) first = next;
    else return { id: idOf(period, first), startsAt, endsAt };
  }
}

const lengths = { day: { days: 1 }, week: { days: 7 }, month: { months: 1 } } as const;

function firstDate(period: Recurring, date: Temporal.PlainDate): Temporal.PlainDate {
  if (period === "day") return date;
  if (period === "month") return date.with({ day: 1 });
  return date.subtract({ days: date.dayOfWeek - 1 });
}

/** The first moment of a date, which need not be midnight. */
function startOf(date: Temporal.PlainDate, timeZone: string): number {
  return date.toZonedDateTime(timeZone).epochMilliseconds;
}

function idOf(period: Recurring, first: Temporal.PlainDate): string {
  if (period === "day") return first.toString();
  if (period === "month") return first.toString().slice(0, -3);
  const { yearOfWeek = first.year, weekOfYear = 1 } = first;
  return `${yearOfWeek}-W${String(weekOfYear).padStart(2, "0")}`;
}

/** Whether a text is the name of a time zone in the IANA database, spelled as there. */
export function isTimeZone(name: string): boolean {
  // Offsets such as +05:30 have no names.
  if (!/^[A-Za-z]/.test(name)) return false;
  try {
    return new Intl.DateTimeFormat("en", { timeZone: name }).resolvedOptions().timeZone === name;
  } catch {
    return false;
  }
}
