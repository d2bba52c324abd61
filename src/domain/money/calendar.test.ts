import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { BudgetPeriod } from "./budget.ts";
import { Calendar, isTimeZone } from "./calendar.ts";

const hourMs = 3_600_000;
const zones = [
  "UTC",
  "Europe/Berlin",
  "America/New_York",
  "America/St_Johns",
  "America/Sao_Paulo",
  "America/Havana",
  "Asia/Beirut",
  "Asia/Kathmandu",
  "Asia/Kolkata",
  "Africa/Cairo",
  "Australia/Lord_Howe",
  "Pacific/Apia",
  "Pacific/Chatham",
  "Pacific/Kiritimati",
  "Pacific/Marquesas",
];

function periodAt(period: BudgetPeriod, timeZone: string, at: number | string) {
  return new Calendar().periodAt({ period, timeZone, createdAt: 5 }, new Date(at).getTime());
}

/** The local date by the formatter of the runtime, which knows nothing of the calendar. */
function localDate(timeZone: string, at: number): string {
  return new Intl.DateTimeFormat("en-CA", { timeZone }).format(at);
}

describe("periods", () => {
  test.each([
    ["day", "UTC", "2026-11-28T12:00Z", "2026-11-28", "2026-11-28T00:00Z", 24],
    ["day", "Europe/Berlin", "2026-03-29T12:00Z", "2026-03-29", "2026-03-28T23:00Z", 23],
    ["day", "Europe/Berlin", "2026-10-25T12:00Z", "2026-10-25", "2026-10-24T22:00Z", 25],
    // Midnight does not exist.
    ["day", "America/Sao_Paulo", "2018-11-04T12:00Z", "2018-11-04", "2018-11-04T03:00Z", 23],
    // Half an hour of summer time.
    ["day", "Australia/Lord_Howe", "2026-10-04T02:00Z", "2026-10-04", "2026-10-03T13:30Z", 23.5],
    ["day", "Asia/Kathmandu", "2026-11-28T18:15Z", "2026-11-29", "2026-11-28T18:15Z", 24],
    ["day", "Asia/Kathmandu", "2026-11-28T18:14:59.999Z", "2026-11-28", "2026-11-27T18:15Z", 24],
    ["day", "Asia/Kolkata", "2026-11-28T18:30Z", "2026-11-29", "2026-11-28T18:30Z", 24],
    ["week", "UTC", "2026-11-29T23:59:59.999Z", "2026-W48", "2026-11-23T00:00Z", 168],
    ["week", "UTC", "2026-11-30T00:00Z", "2026-W49", "2026-11-30T00:00Z", 168],
    // Weeks belong to the year of their Thursday.
    ["week", "UTC", "2027-01-03T12:00Z", "2026-W53", "2026-12-28T00:00Z", 168],
    ["week", "UTC", "2024-12-30T12:00Z", "2025-W01", "2024-12-30T00:00Z", 168],
    ["week", "Europe/Berlin", "2026-03-29T12:00Z", "2026-W13", "2026-03-22T23:00Z", 167],
    ["month", "UTC", "2024-02-29T12:00Z", "2024-02", "2024-02-01T00:00Z", 29 * 24],
    ["month", "America/New_York", "2026-11-30T12:00Z", "2026-11", "2026-11-01T04:00Z", 721],
    ["month", "UTC", "2026-12-31T23:59:59.999Z", "2026-12", "2026-12-01T00:00Z", 31 * 24],
  ] as const)("a %s in %s at %s is %s", (period, zone, at, id, ...[start, hours]) => {
    const startsAt = new Date(start).getTime();
    expect(periodAt(period, zone, at)).toEqual({ id, startsAt, endsAt: startsAt + hours * hourMs });
  });

  test("a total never ends", () => {
    expect(periodAt("total", "UTC", 9)).toEqual({ id: "total", startsAt: 5, endsAt: Infinity });
  });

  test("follow one another without a gap and begin on the right date, in any zone at any time", () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...zones),
        fc.constantFrom("day", "week", "month"),
        fc.integer({ min: Date.UTC(2000), max: Date.UTC(2050) }),
        (timeZone, period, at) => {
          const calendar = new Calendar();
          const of = (time: number) => calendar.periodAt({ period, timeZone, createdAt: 0 }, time);
          const found = of(at);
          expect(found.startsAt).toBeLessThanOrEqual(at);
          expect(found.endsAt).toBeGreaterThan(at);
          const next = of(found.endsAt);
          expect(next.startsAt).toBe(found.endsAt);
          expect(next.id > found.id).toBe(true);
          // Neither the order of questions nor what is remembered matters.
          expect(of(found.endsAt - 1)).toEqual(found);
          expect(of(found.startsAt)).toEqual(found);
          expect(new Calendar().periodAt({ period, timeZone, createdAt: 0 }, at)).toEqual(found);
          const first = localDate(timeZone, found.startsAt);
          if (period === "day") expect(first).toBe(found.id);
          if (period === "month") expect(first).toBe(`${found.id}-01`);
          if (period === "week") expect(new Date(first).getUTCDay()).toBe(1);
          expect(localDate(timeZone, found.startsAt - 1) < first).toBe(true);
        },
      ),
      { numRuns: 3_000 },
    );
  });
});

test("a time zone is a name of the database, spelled as there", () => {
  for (const zone of [...zones, ...Intl.supportedValuesOf("timeZone")]) {
    expect([zone, isTimeZone(zone)]).toEqual([zone, true]);
  }
  for (const text of ["", "Mars/X", "+05:30", "europe/berlin", "utc", " UTC", "UTC\0"]) {
    expect([text, isTimeZone(text)]).toEqual([text, false]);
  }
});
