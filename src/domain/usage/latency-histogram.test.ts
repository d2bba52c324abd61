import { expect, test } from "bun:test";
import fc from "fast-check";
import { compactLatencies, encodeLatency, latenciesAt } from "./latency-histogram.ts";

const latency = fc.double({ min: 0.02, max: 1e9, noNaN: true });
const latencies = fc.array(latency, { minLength: 1, maxLength: 300 });

test("any percentile is found within 5 %, by nearest rank", () => {
  fc.assert(
    fc.property(latencies, fc.double({ min: 0, max: 1, noNaN: true }), (values, share) => {
      const text = values.map(encodeLatency).join("");
      const sorted = values.toSorted((one, other) => one - other);
      const exact = sorted[Math.max(1, Math.ceil(share * values.length)) - 1] ?? Number.NaN;
      const [found = Number.NaN] = latenciesAt(text, [share]) ?? [];
      expect(Math.abs(found / exact - 1)).toBeLessThanOrEqual(0.05);
    }),
  );
});

test("joining and compacting in any order gives the same result", () => {
  fc.assert(
    fc.property(latencies, latencies, (one, other) => {
      const [first, second] = [one, other].map((values) => values.map(encodeLatency).join(""));
      const shares = [0.01, 0.5, 0.95, 1];
      const whole = latenciesAt(`${first}${second}`, shares);
      expect(latenciesAt(compactLatencies(`${first}`) + second, shares)).toEqual(whole);
      expect(latenciesAt(second + compactLatencies(`${first}`), shares)).toEqual(whole);
      expect(compactLatencies(compactLatencies(`${first}`) + second)).toBe(
        compactLatencies(`${second}${first}`),
      );
    }),
  );
});

test("many observations of few values are stored in few characters", () => {
  let text = "";
  for (let count = 0; count < 10_000; count += 1) text += encodeLatency(100 + (count % 50));
  const compact = compactLatencies(text);
  expect(compact.length).toBeLessThan(60);
  expect(latenciesAt(compact, [0.5])).toEqual(latenciesAt(text, [0.5]));
});

test("without observations there are no percentiles, and NaN is not an observation", () => {
  expect(latenciesAt("", [0.5])).toBeUndefined();
  expect(encodeLatency(Number.NaN)).toBe("");
});

test("times beyond the bounds are counted at the ends", () => {
  for (const value of [-1, 0, 0.001, 1e300, Number.POSITIVE_INFINITY]) {
    const text = encodeLatency(value);
    expect(text).toHaveLength(2);
    expect(latenciesAt(compactLatencies(text + text), [0.5, 1])).toHaveLength(2);
  }
});
