import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { cells, FaultMatrixBench, type Cell } from "../support/fault-matrix-bench.ts";
import { faultModeNames, faultVariants } from "../support/fault-matrix-table.ts";
import { problemsOf, retriesAfterFirstByte } from "../support/fault-matrix-verdict.ts";
import { upstreamKinds } from "../support/gateway.ts";
import { report } from "../support/scorecard.ts";

/** A stream of a million deltas takes its time. */
const cellTimeoutMs = 300_000;

const tally = { cells: 0, correct: 0, hung: 0, heldPlaces: 0, retriesAfterFirstByte: 0 };

describe.each(upstreamKinds)("over the wire of %s", (kind) => {
  let bench: FaultMatrixBench;
  beforeAll(async () => {
    bench = await FaultMatrixBench.start(kind);
  });
  afterAll(async () => {
    await bench[Symbol.asyncDispose]();
  });

  for (const cell of cells) {
    test(
      nameOf(cell),
      async () => {
        tally.cells += 1;
        const listed = cell.isStreamed ? cell.variant.streamed : cell.variant.plain;
        const calls = await bench.callsOf(cell);
        const isPlaceFree = await bench.isPlaceFree();
        const problems = calls.flatMap((call, index) =>
          problemsOf({ cell, index, outcome: listed[index] ?? "whole" }, call),
        );
        if (problems.length === 0) tally.correct += 1;
        if (calls.some(({ isHung }) => isHung)) tally.hung += 1;
        if (!isPlaceFree) tally.heldPlaces += 1;
        for (const call of calls) tally.retriesAfterFirstByte += retriesAfterFirstByte(call);
        expect({ problems, isPlaceFree }).toEqual({ problems: [], isPlaceFree: true });
      },
      cellTimeoutMs,
    );
  }
});

function nameOf({ variant, isStreamed, hasSecond }: Cell): string {
  const behind = hasSecond ? "with a second target" : "without another target";
  const listed = isStreamed ? variant.streamed : variant.plain;
  return `${variant.mode}, ${variant.name}: a ${isStreamed ? "stream" : "plain call"} ${behind} (${listed.join(", ")})`;
}

test("the matrix has all 24 modes", () => {
  expect(faultModeNames).toHaveLength(24);
  expect(new Set(faultVariants.map(({ mode }) => mode))).toEqual(new Set(faultModeNames));
});

test("every call ended as it should, none hung, every place came back, and nothing was begun twice", () => {
  const { cells: count, correct, hung, heldPlaces, retriesAfterFirstByte: retries } = tally;
  const all = cells.length * upstreamKinds.length;
  report({
    check: 20,
    name: "outcomes of 24 faults as listed",
    value: `${correct} of ${count}`,
    limit: `${all} of ${all}`,
    isMet: correct === all,
  });
  const none = [
    ["calls that hung under faults", hung],
    ["places held after a fault", heldPlaces],
    ["retries after the first byte, all faults", retries],
  ] as const;
  for (const [name, value] of none) {
    report({ check: 20, name, value, limit: 0, isMet: value === 0 });
  }
  expect({ correct, hung, heldPlaces, retries }).toEqual({
    correct: all,
    hung: 0,
    heldPlaces: 0,
    retries: 0,
  });
});
