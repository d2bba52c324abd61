import { expect, test } from "bun:test";
import fc from "fast-check";
import { usageSteps } from "../../../domain/usage/usage.ts";
import { cutRange, stepLengthsMs, type UsageExtent } from "./usage-range.ts";

const minuteMs = stepLengthsMs.minute;
const hourMs = stepLengthsMs.hour;
const dayMs = stepLengthsMs.day;
const start = Date.UTC(2026, 2, 1);

function extentOf(values: Partial<UsageExtent> = {}): UsageExtent {
  const until = start + 100 * dayMs;
  return { since: start, until, callsSince: 0, hoursSince: 0, ...values };
}

test("a range is cut into days where they fit, and hours and minutes at its ends", () => {
  const since = start + 22 * hourMs + 58 * minuteMs + 30_000;
  const until = start + 3 * dayMs + hourMs + 1;
  expect(cutRange({ since, until, longest: "day", extent: extentOf() })).toEqual([
    { step: "minute", since: start + 22 * hourMs + 58 * minuteMs, until: start + 23 * hourMs },
    { step: "hour", since: start + 23 * hourMs, until: start + dayMs },
    { step: "day", since: start + dayMs, until: start + 3 * dayMs },
    { step: "hour", since: start + 3 * dayMs, until: start + 3 * dayMs + hourMs },
    {
      step: "minute",
      since: start + 3 * dayMs + hourMs,
      until: start + 3 * dayMs + hourMs + minuteMs,
    },
  ]);
});

test("where minutes or hours were removed, the ends are widened to longer steps", () => {
  const extent = extentOf({ callsSince: start + 50 * dayMs, hoursSince: start + 20 * dayMs });
  const since = start + 10 * dayMs + 5 * minuteMs;
  const until = start + 30 * dayMs + 5 * minuteMs;
  expect(cutRange({ since, until, longest: "day", extent })).toEqual([
    { step: "day", since: start + 10 * dayMs, until: start + 30 * dayMs },
    { step: "hour", since: start + 30 * dayMs, until: start + 30 * dayMs + hourMs },
  ]);
});

test("a range that ends after everything stored needs no calls at its end", () => {
  const newest = start + 2 * dayMs + 90_000;
  const extent = extentOf({ until: newest + 1 });
  const question = { since: start, until: newest + 7 * minuteMs, extent };
  expect(cutRange({ ...question, longest: "day" })).toEqual([
    { step: "day", since: start, until: start + 3 * dayMs },
  ]);
  expect(cutRange({ ...question, longest: "hour" })).toEqual([
    { step: "hour", since: start, until: start + 2 * dayMs + hourMs },
  ]);
});

test("no step is longer than requested", () => {
  const question = { since: start, until: start + 2 * dayMs, extent: extentOf() };
  expect(cutRange({ ...question, longest: "minute" })).toEqual([
    { step: "minute", since: start, until: start + 2 * dayMs },
  ]);
  expect(cutRange({ ...question, longest: "hour" })).toEqual([
    { step: "hour", since: start, until: start + 2 * dayMs },
  ]);
});

test("nothing is read outside the extent, for any range", () => {
  const extent = { since: 0, until: 0, callsSince: 0, hoursSince: 0 };
  const forever = { since: 0, until: Date.UTC(2500, 0, 1), longest: "minute" } as const;
  expect(cutRange({ ...forever, extent })).toEqual([]);
  const [piece, ...rest] = cutRange({ ...forever, extent: extentOf() });
  expect(rest).toEqual([]);
  expect(piece).toEqual({ step: "minute", since: start, until: start + 100 * dayMs });
  expect(cutRange({ since: start + 1, until: start, longest: "day", extent: extentOf() })).toEqual(
    [],
  );
});

test("pieces have no gaps, cover the range, and begin where their steps do", () => {
  const time = fc.integer({ min: start, max: start + 99 * dayMs });
  const horizon = fc.integer({ min: 0, max: 60 });
  fc.assert(
    fc.property(
      time,
      time,
      horizon,
      fc.constantFrom(...usageSteps),
      (one, other, days, longest) => {
        const [since, until] = [Math.min(one, other), Math.max(one, other) + 1];
        const gone = start + days * dayMs;
        const extent = extentOf({
          callsSince: gone,
          hoursSince: start + Math.max(0, days - 10) * dayMs,
        });
        const pieces = cutRange({ since, until, longest, extent });
        expect(pieces[0]?.since).toBeLessThanOrEqual(since);
        expect(pieces.at(-1)?.until).toBeGreaterThanOrEqual(until);
        for (const [index, piece] of pieces.entries()) {
          const lengthMs = stepLengthsMs[piece.step];
          expect([piece.since % lengthMs, piece.until % lengthMs]).toEqual([0, 0]);
          expect(piece.until).toBeGreaterThan(piece.since);
          expect(piece.since).toBe(pieces[index - 1]?.until ?? piece.since);
          if (piece.step === "minute" && longest !== "minute") {
            expect(piece.since).toBeGreaterThanOrEqual(extent.callsSince);
            expect(piece.until - piece.since).toBeLessThan(2 * hourMs);
          }
        }
      },
    ),
  );
});
