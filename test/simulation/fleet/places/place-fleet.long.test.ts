import { describe, expect, test } from "bun:test";
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
const fleet: PlaceFleetOptions = {
  seed: 1,
  workers: 20,
  places: 200,
  load: 1.5,
  seconds: 20,
  terms,
};
const fromMs = 15_000;

describe.each([1, 2, 3])("ten gateways whose server answers: seed %i", (seed) => {
  test.each([0.5, 0.9, 1.5])("never use more places than there are: load %p", (load) => {
    const result = runPlaceFleet({ ...fleet, seed, load });
    expect(result.most).toBeLessThanOrEqual(1);
    expect(result.allotted).toBeLessThanOrEqual(1);
    expect(result.light.refused).toBeLessThan(0.02);
    expect(result.light.refused).toBeLessThanOrEqual(result.heavy.refused);
  });

  test.each(["frozen", "killed"] as const)("use somewhat more while it is %s", (kind) => {
    const fault = { kind, fromMs, untilMs: fromMs + 30_000 };
    const result = runPlaceFleet({ ...fleet, seed, seconds: 60, fault });
    expect(result.most).toBeLessThan(1.3);
    expect(result.overMs).toBeLessThan(14_000);
    expect(result.unused).toBeLessThan(0.02);
  });

  test("use hardly more after a flush", () => {
    const fault = { kind: "flushed", fromMs } as const;
    const result = runPlaceFleet({ ...fleet, seed, seconds: 30, fault });
    expect(result.most).toBeLessThan(1.1);
    expect(result.overMs).toBeLessThan(2_000);
  });
});

test("fifty gateways without enough places leave the server most of its time", () => {
  const result = runPlaceFleet({ ...fleet, workers: 100, places: 1_000 });
  expect([result.most, result.allotted, result.unanswered]).toEqual([1, 1, 0]);
  expect(result.unused).toBeLessThan(0.01);
  expect(result.utilisation).toBeLessThan(0.35);
});

describe("a hundred gateways", () => {
  const large = { ...fleet, workers: 200, places: 2_000 };

  test("with half of the places in use hardly need the server", () => {
    const result = runPlaceFleet({ ...large, load: 0.5 });
    expect(result.most).toBeLessThan(1);
    expect(result.utilisation).toBeLessThan(0.3);
    expect(result.unanswered).toBe(0);
  });

  test("without enough places serve the calls of all accounts", () => {
    const result = runPlaceFleet(large);
    expect(result.most).toBeLessThan(1.1);
    expect(result.unused).toBeLessThan(0.01);
    expect(result.light.refused).toBeLessThan(0.02);
    expect(result.utilisation).toBeLessThan(0.6);
  });
});
