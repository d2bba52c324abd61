import { expect, test } from "bun:test";
import { formatWindowChart } from "./explain-refusal.ts";

/** The columns of a chart, as heights in eighths of a line. */
function heightsOf(chart: string): number[] {
  const lines = chart.split("\n").filter((line) => line.includes("|"));
  const columns = lines.map((line) =>
    line
      .slice(line.indexOf("|") + 1)
      .padEnd(61)
      .split(""),
  );
  return Array.from({ length: 61 }, (_, index) =>
    columns.reduce((sum, column) => sum + " ▁▂▃▄▅▆▇█".indexOf(column[index] ?? " "), 0),
  );
}

test("seconds are in order, the oldest at the left, with heights by their amounts", () => {
  const heights = heightsOf(
    formatWindowChart([
      { ageMs: 60_000, amount: 100 },
      { ageMs: 30_500, amount: 50 },
      { ageMs: 0, amount: 25 },
    ]),
  );
  expect(heights[0]).toBe(48);
  expect(heights[30]).toBe(24);
  expect(heights[60]).toBe(12);
  expect(heights.filter((height) => height > 0)).toHaveLength(3);
});

test("a small second beside a large one is visible, an empty one is not", () => {
  const heights = heightsOf(
    formatWindowChart([
      { ageMs: 1000, amount: 1_000_000 },
      { ageMs: 2000, amount: 1 },
      { ageMs: 3000, amount: 0 },
    ]),
  );
  expect(heights.slice(57)).toEqual([0, 1, 48, 0]);
});

test("slots outside the window count at its edge, and slots of one second are added", () => {
  const heights = heightsOf(
    formatWindowChart([
      { ageMs: 75_000, amount: 10 },
      { ageMs: 60_100, amount: 10 },
      { ageMs: -20, amount: 5 },
    ]),
  );
  expect(heights[0]).toBe(48);
  expect(heights[60]).toBe(12);
});

test("the scale names the highest second and both ends, and no line is wider than a terminal", () => {
  const chart = formatWindowChart([{ ageMs: 5000, amount: 123_456 }]);
  expect(chart).toContain("123456 |");
  expect(chart).toContain("60 s before");
  expect(chart).toContain("the refusal");
  for (const line of chart.split("\n")) expect(line.length).toBeLessThanOrEqual(80);
});

test("the highest column is labelled with a whole number", () => {
  expect(formatWindowChart([{ ageMs: 0, amount: 41.66667 }])).toStartWith("  42 |");
});
