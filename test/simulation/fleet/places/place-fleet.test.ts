import { describe, expect, test } from "bun:test";
import { quantile } from "../../../../bench/statistics.ts";
import { runPlaceFleet, type PlaceFleetOptions } from "./place-fleet.ts";

const terms = {
  scriptMs: 0.01,
  fieldMs: 0.0018,
  divisionMs: 0.002,
  newsMs: 0.0045,
  decisionMs: 0.045,
  settleMs: 0.025,
  networkMs: 0.25,
  timeoutMs: 50,
};
/** Each worker has ten of the places on average. */
const fleet: PlaceFleetOptions = {
  seed: 1,
  workers: 6,
  places: 60,
  load: 1.5,
  seconds: 20,
  terms,
};

test("calls that want half of the places wait for no other call", () => {
  const result = runPlaceFleet({ ...fleet, load: 0.5 });
  expect(result.most).toBeLessThanOrEqual(1);
  expect([result.heavy.refused, result.light.refused]).toEqual([0, 0]);
  expect(result.light.waits.at(-1)).toBeLessThan(100);
});

test.each([1, 2])("few places are left: workers hand them to each other; seed %i", (seed) => {
  const result = runPlaceFleet({ ...fleet, seed, workers: 20, places: 200, load: 0.85 });
  expect(result.most).toBeLessThanOrEqual(1);
  expect([result.heavy.refused, result.light.refused]).toEqual([0, 0]);
  expect(quantile(result.heavy.waits, 0.99)).toBeLessThan(50);
  expect(quantile(result.light.waits, 0.99)).toBeLessThan(50);
});

describe("with half more calls than the places can serve", () => {
  const result = runPlaceFleet(fleet);

  test("never more places are used or allotted than there are, and nearly all of them", () => {
    expect([result.most, result.allotted]).toEqual([1, 1]);
    expect(result.unused).toBeLessThan(0.01);
    expect(result.unanswered).toBe(0);
  });

  test("the server is hardly busy", () => {
    expect(result.utilisation).toBeLessThan(0.02);
  });

  test("the account with half of all calls is refused, and the others are not", () => {
    expect(result.heavy.refused).toBeGreaterThan(0.4);
    expect(result.light.refused).toBeLessThan(0.05);
    expect(result.light.served).toBeGreaterThan(result.heavy.served);
  });
});

describe.each(["frozen", "killed"] as const)("a server that is %s for 30 s", (kind) => {
  const fault = { kind, fromMs: 12_000, untilMs: 42_000 };
  const result = runPlaceFleet({ ...fleet, seconds: 50, fault });

  test("lets fewer than twice the places be used, and not for much longer than 10 s", () => {
    expect(result.most).toBeGreaterThan(1);
    expect(result.most).toBeLessThan(1.3);
    expect(result.overMs).toBeLessThan(13_000);
  });

  test("leaves hardly any place unused while calls wait", () => {
    expect(result.lowMs).toBeLessThan(1_000);
    expect(result.unused).toBeLessThan(0.03);
  });
});

test.each([1, 2, 3])("after the loss of all data hardly more places are used: seed %i", (seed) => {
  const fault = { kind: "flushed", fromMs: 12_000 } as const;
  const result = runPlaceFleet({ ...fleet, seed, fault });
  expect(result.most).toBeLessThan(1.1);
  expect(result.overMs).toBeLessThan(2_000);
  expect(result.unused).toBeLessThan(0.01);
});

test("the places of workers that died are used again after 10 s, and not before", () => {
  const deathAtMs = 12_000;
  const result = runPlaceFleet({ ...fleet, seconds: 25, deathAtMs });
  expect(result.allotted).toBe(1);
  // A call of a dead worker may run for longer.
  expect(result.most).toBeLessThan(1.05);
  expect(result.unused).toBeGreaterThan(0.05);
  expect(result.lowUntilMs - deathAtMs).toBeGreaterThan(8_000);
  expect(result.lowUntilMs - deathAtMs).toBeLessThan(11_000);
});

test("equal seeds give equal results", () => {
  const short = { ...fleet, seconds: 12 };
  expect(runPlaceFleet(short)).toEqual(runPlaceFleet(short));
});
