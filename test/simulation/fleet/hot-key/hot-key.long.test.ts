import { describe, expect, test } from "bun:test";
import { runHotKey, type HotKeyOptions } from "./hot-key.ts";

const terms = {
  countMs: 0.0225,
  acquireMs: 0.0225,
  settleMs: 0.025,
  giveBackMs: 0.025,
  newsMs: 0.0045,
  networkMs: 0.25,
  againMs: 5,
};
const fleet: HotKeyOptions = {
  seed: 1,
  workers: 200,
  keys: 1_000,
  callsPerSecond: 10_000,
  hotShare: 0.6,
  hotLoad: 1.5,
  seconds: 130,
  hasLeases: true,
  terms,
};

describe.each([1.01, 1.5, 4])(
  "200 workers that get calls of one key: %p of its limit",
  (hotLoad) => {
    test.each([1, 2])("admit no more than it, and no less: seed %i", (seed) => {
      const result = runHotKey({ ...fleet, seed, hotLoad });
      expect(result.worst).toBe(1);
      expect(result.refusedWithRoom).toBeLessThan(0.0001);
      expect(result.recalls).toBeGreaterThan(0);
    });
  },
);

test("a server that is nearly busy answers twice as many calls with leases", () => {
  const short = { ...fleet, hotLoad: 0.8, seconds: 20 };
  const asked = runHotKey({ ...short, hasLeases: false });
  const leased = runHotKey({ ...short, callsPerSecond: 2.3 * fleet.callsPerSecond });
  expect(leased.utilisation).toBeLessThan(1.05 * asked.utilisation);
});
