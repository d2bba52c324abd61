import { describe, expect, test } from "bun:test";
import { isMet, rowLines, summaryLines } from "../report/table.ts";
import type { Call } from "../load/load-plan.ts";
import type { Left } from "./cells.ts";
import { columns, gridLimits, judgeCell, type CellRun, type Column } from "./verdict.ts";

const brokenAt = 10_000;
const repairedAt = brokenAt + 60_000;
const endsAt = repairedAt + 12_000;

/** Fifty calls a second; `differ` changes the calls that a test is about. */
function callsOf(differ: (startedAt: number) => Partial<Call> = () => ({})): readonly Call[] {
  return Array.from({ length: (endsAt / 1000) * 50 }, (_, index) => {
    const startedAt = index * 20;
    const isOutage = startedAt >= brokenAt && startedAt < repairedAt;
    const servedBy = isOutage ? "second" : "primary";
    return { startedAt, latencyMs: 25, servedBy, failure: "", ...differ(startedAt) };
  });
}

function runOf(changes: Partial<CellRun> & { readonly left?: Left } = {}): CellRun {
  const { left = "second", ...rest } = changes;
  return {
    cell: { name: "a/cell", fault: "throttle", left, wire: "openai", kind: "whole" },
    primary: "primary",
    warmedUpAt: 1_000,
    brokenAt,
    repairedAt,
    noticedMs: 1_000,
    attemptsAtFailing: 59,
    calls: callsOf(),
    control: callsOf(),
    ...rest,
  };
}

/** The columns whose promise is broken. */
function brokenColumns(run: CellRun, limits = gridLimits): readonly Column[] {
  const { findings } = judgeCell(run, limits);
  return columns.filter((column) => !findings[column].isMet);
}

const failsFrom =
  (from: number, count: number, failure = "503 model_unavailable") =>
  (startedAt: number): Partial<Call> =>
    startedAt >= from && startedAt < from + count * 20 ? { failure } : {};

describe("served", () => {
  test("a run without a failure keeps every promise", () => {
    expect(brokenColumns(runOf())).toEqual([]);
  });

  test("failures of the first second of the fault do not count", () => {
    expect(brokenColumns(runOf({ calls: callsOf(failsFrom(brokenAt, 50)) }))).toEqual([]);
    expect(brokenColumns(runOf({ calls: callsOf(failsFrom(brokenAt, 53)) }))).toEqual(["served"]);
  });

  test("two of 2950 calls may fail, and three may not", () => {
    const from = brokenAt + 5_000;
    expect(brokenColumns(runOf({ calls: callsOf(failsFrom(from, 2)) }))).toEqual([]);
    expect(brokenColumns(runOf({ calls: callsOf(failsFrom(from, 3)) }))).toEqual(["served"]);
  });

  test("a short run may have as many failures as its limits allow", () => {
    const run = runOf({ calls: callsOf(failsFrom(brokenAt + 5_000, 3)) });
    expect(brokenColumns(run, { ...gridLimits, alwaysAllowedFailures: 3 })).toEqual([]);
  });

  test("one failure after the return breaks only that promise", () => {
    const run = runOf({ calls: callsOf(failsFrom(repairedAt + 100, 1)) });
    expect(brokenColumns(run)).toEqual(["return"]);
  });

  test("a failure of the control calls breaks their promise", () => {
    const run = runOf({ control: callsOf(failsFrom(brokenAt, 5)) });
    expect(brokenColumns(run)).toEqual(["beside"]);
  });

  test("no calls at all keep no promise", () => {
    const broken = brokenColumns(runOf({ calls: [] }));
    expect(broken).toContain("served");
    expect(broken).toContain("return");
    expect(broken).toContain("share");
  });
});

describe("added latency", () => {
  const slow =
    (latencyMs: number, share: number) =>
    (startedAt: number): Partial<Call> =>
      startedAt >= brokenAt + 1_000 &&
      startedAt < repairedAt &&
      (startedAt / 20) % 100 < share * 100
        ? { latencyMs }
        : {};

  test("one call of fifty that takes 51 ms more breaks the promise, one of two hundred does not", () => {
    expect(brokenColumns(runOf({ calls: callsOf(slow(76, 0.02)) }))).toEqual(["added p99"]);
    expect(brokenColumns(runOf({ calls: callsOf(slow(76, 0.005)) }))).toEqual([]);
    expect(brokenColumns(runOf({ calls: callsOf(slow(75, 0.02)) }))).toEqual([]);
  });

  test("latency that the control calls have too does not count", () => {
    const control = callsOf(slow(76, 0.02));
    expect(brokenColumns(runOf({ calls: callsOf(slow(100, 0.02)), control }))).toEqual([]);
  });

  test("latency is not judged without a limit", () => {
    const run = runOf({ calls: callsOf(slow(5_000, 1)) });
    expect(brokenColumns(run, { ...gridLimits, mostAddedMs: undefined })).toEqual([]);
  });
});

describe("attempts at the failing target", () => {
  test("one a second is allowed", () => {
    expect(brokenColumns(runOf({ attemptsAtFailing: 59 }))).toEqual([]);
    expect(brokenColumns(runOf({ attemptsAtFailing: 60 }))).toEqual(["attempts"]);
  });

  test("attempts that could not be counted keep no promise", () => {
    expect(brokenColumns(runOf({ attemptsAtFailing: Number.NaN }))).toEqual(["attempts"]);
  });
});

describe("share after the return", () => {
  const backAt =
    (at: number, share: number) =>
    (startedAt: number): Partial<Call> => {
      if (startedAt < repairedAt) return {};
      const isBack = startedAt >= at && (startedAt / 20) % 100 < share * 100;
      return { servedBy: isBack ? "primary" : "second" };
    };

  test("a target that is back after ten seconds is in time, after eleven it is not", () => {
    expect(brokenColumns(runOf({ calls: callsOf(backAt(repairedAt + 10_000, 1)) }))).toEqual([]);
    expect(brokenColumns(runOf({ calls: callsOf(backAt(repairedAt + 11_000, 1)) }))).toEqual([
      "share",
    ]);
  });

  test("a target of equal weight is back with half of the calls, within chance", () => {
    const half = callsOf(backAt(repairedAt, 0.5));
    expect(brokenColumns(runOf({ calls: half, left: "equal" }))).toEqual([]);
    expect(brokenColumns(runOf({ calls: half, left: "fallback" }))).toEqual(["share"]);
    const tenth = callsOf(backAt(repairedAt, 0.1));
    expect(brokenColumns(runOf({ calls: tenth, left: "equal" }))).toEqual(["share"]);
  });

  test("the table has the second from which the target has its share", () => {
    const { findings } = judgeCell(
      runOf({ calls: callsOf(backAt(repairedAt + 7_000, 1)) }),
      gridLimits,
    );
    expect(findings.share.text).toBe("100 % (after 7 s)");
    const never = judgeCell(runOf({ calls: callsOf(backAt(Infinity, 1)) }), gridLimits);
    expect(never.findings.share.text).toBe("0 % (never)");
  });
});

describe("the table", () => {
  test("a failed row marks the column and has the errors of callers", () => {
    const row = judgeCell(runOf({ calls: callsOf(failsFrom(brokenAt + 5_000, 9)) }), gridLimits);
    const [line = "", note] = rowLines(row);
    expect(line).toStartWith("FAIL a/cell");
    expect(line).toContain("! 99.69 % (9/2950)");
    expect(line.match(/! /g)).toHaveLength(1);
    expect(note).toBe("       during the fault: 9 x 503 model_unavailable");
  });

  test("the summary counts by column and by cell", () => {
    const good = judgeCell(runOf(), gridLimits);
    const bad = judgeCell(runOf({ attemptsAtFailing: 600 }), gridLimits);
    expect([good, bad].map(isMet)).toEqual([true, false]);
    expect(summaryLines([good, bad], columns)).toEqual([
      "PASS served: 2 of 2",
      "PASS added p99: 2 of 2",
      "FAIL attempts: 1 of 2",
      "PASS share: 2 of 2",
      "PASS return: 2 of 2",
      "PASS beside: 2 of 2",
      "FAIL cells: 1 of 2",
    ]);
  });
});
