import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { QuantileEstimator } from "./quantile.ts";

const bounds = { minimum: 1, maximum: 100_000 };
const quantile = 0.95;

/** Draws one value from a uniform number between 0 and 1. */
type Draw = (uniform: number) => number;

const distributions: readonly (readonly [string, Draw])[] = [
  ["uniform", (uniform) => 1 + 999 * uniform],
  ["narrow", (uniform) => 400 + 20 * uniform],
  ["exponential", (uniform) => 1 - 300 * Math.log(1 - uniform)],
  ["heavy-tailed", (uniform) => 20 * (1 - uniform) ** (-1 / 1.5)],
  ["whole numbers", (uniform) => Math.ceil(50 - 200 * Math.log(1 - uniform))],
  ["two humps", (uniform) => (uniform < 0.8 ? 10 + 10 * uniform : 2_000 + 500 * uniform)],
];

describe.each(distributions)("the 95th percentile of %s values", (_name, draw) => {
  test("is found from any start: about 95 of 100 later values lie below the estimate", () => {
    fc.assert(
      fc.property(fc.integer(), fc.integer({ min: 1, max: 100_000 }), (seed, start) => {
        const random = randomOf(seed);
        const estimator = new QuantileEstimator({ quantile, start, ...bounds });
        for (let count = 0; count < 4_000; count++) estimator.observe(draw(random()));
        let below = 0;
        for (let count = 0; count < 4_000; count++) {
          const value = draw(random());
          if (value <= estimator.value) below += 1;
          estimator.observe(value);
        }
        expect(below / 4_000).toBeGreaterThan(0.93);
        expect(below / 4_000).toBeLessThan(0.97);
      }),
      { numRuns: 100, seed: 20 },
    );
  });

  test("stays near the true value once found", () => {
    fc.assert(
      fc.property(fc.integer(), (seed) => {
        const random = randomOf(seed);
        const estimator = new QuantileEstimator({ quantile, start: 1_000, ...bounds });
        for (let count = 0; count < 4_000; count++) estimator.observe(draw(random()));
        let low = 0;
        let high = 0;
        for (let count = 0; count < 2_000; count++) {
          estimator.observe(draw(random()));
          if (estimator.value < draw(0.85) * 0.98) low += 1;
          if (estimator.value > draw(0.99) * 1.02) high += 1;
        }
        expect(low + high).toBeLessThan(100);
      }),
      { numRuns: 100, seed: 20 },
    );
  });
});

describe("quantile estimator", () => {
  test("begins at its start, clamped to its bounds", () => {
    const starting = (start: number) => new QuantileEstimator({ quantile, start, ...bounds }).value;
    expect([starting(500), starting(0), starting(1e9)]).toEqual([500, 1, 100_000]);
  });

  test("the same observations give the same estimate", () => {
    fc.assert(
      fc.property(fc.array(fc.double({ min: 0, max: 1e6, noNaN: true })), (observations) => {
        const estimates = [1, 2].map(() => {
          const estimator = new QuantileEstimator({ quantile, start: 100, ...bounds });
          for (const observation of observations) estimator.observe(observation);
          return estimator.value;
        });
        expect(estimates[0]).toBe(estimates[1] ?? NaN);
      }),
    );
  });

  test("stays within its bounds for any observations", () => {
    fc.assert(
      fc.property(fc.array(fc.double(), { maxLength: 300 }), (observations) => {
        const estimator = new QuantileEstimator({ quantile, start: 100, ...bounds });
        for (const observation of observations) estimator.observe(observation);
        expect(estimator.value).toBeGreaterThanOrEqual(1);
        expect(estimator.value).toBeLessThanOrEqual(100_000);
      }),
    );
  });

  test("an extreme value moves the settled estimate no more than any other large one", () => {
    const [absurd, large] = [1e300, 600].map((outlier) => {
      const estimator = settledAround(400);
      const before = estimator.value;
      estimator.observe(outlier);
      return estimator.value / before;
    });
    expect(absurd).toBe(large ?? NaN);
    expect(absurd).toBeLessThan(1.05);
  });

  test("one extreme value in a hundred does not distort it", () => {
    const random = randomOf(7);
    const estimator = new QuantileEstimator({ quantile, start: 1_000, ...bounds });
    for (let count = 0; count < 10_000; count++) {
      estimator.observe(random() < 0.01 ? 1e9 : 100 + 100 * random());
    }
    expect(estimator.value).toBeGreaterThan(180);
    expect(estimator.value).toBeLessThan(230);
  });

  test("follows a change, upwards within tens of values and downwards within hundreds", () => {
    const rising = settledAround(100);
    for (let count = 0; count < 60; count++) rising.observe(1_000);
    expect(rising.value).toBeGreaterThan(950);
    const falling = settledAround(1_000);
    for (let count = 0; count < 600; count++) falling.observe(100);
    expect(falling.value).toBeLessThan(150);
  });

  test("serves ratios below one as well", () => {
    const random = randomOf(3);
    const estimator = new QuantileEstimator({ quantile, start: 1, minimum: 0.01, maximum: 1 });
    for (let count = 0; count < 3_000; count++) estimator.observe(0.22 + 0.04 * random());
    expect(estimator.value).toBeGreaterThan(0.25);
    expect(estimator.value).toBeLessThan(0.27);
  });

  test("ignores values that are not numbers", () => {
    const estimator = new QuantileEstimator({ quantile, start: 100, ...bounds });
    for (let count = 0; count < 50; count++) estimator.observe(NaN);
    expect(estimator.value).toBe(100);
  });
});

function settledAround(center: number): QuantileEstimator {
  const random = randomOf(1);
  const estimator = new QuantileEstimator({ quantile, start: center, ...bounds });
  for (let count = 0; count < 3_000; count++) estimator.observe(center * (0.95 + 0.1 * random()));
  return estimator;
}

/** Mulberry32: uniform numbers from a seed. */
function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
