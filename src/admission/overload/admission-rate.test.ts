import { expect, test } from "bun:test";
import { AdmissionRate } from "./admission-rate.ts";

const targetMs = 100;

/** Calls that arrive evenly while the rate is updated every 50 ms; how many were admitted. */
function pass(
  rate: AdmissionRate,
  {
    from,
    seconds,
    perSecond,
    delayMs,
  }: Record<"from" | "seconds" | "perSecond" | "delayMs", number>,
): number {
  let admitted = 0;
  for (let step = 0; step < seconds * 20; step += 1) {
    const now = from + step * 50;
    for (let call = 0; call < perSecond / 20; call += 1) {
      const at = now + (call * 1_000) / perSecond;
      if (rate.admits({ now: at, isImportant: true, isLate: false })) admitted += 1;
    }
    rate.update({ now: now + 50, delayMs, targetMs });
  }
  return admitted;
}

test("all calls are admitted while the delay is below its target", () => {
  const rate = new AdmissionRate();
  expect(pass(rate, { from: 0, seconds: 5, perSecond: 1_000, delayMs: 99 })).toBe(5_000);
});

test("a delay at its target keeps the previous rate, however many more calls come", () => {
  const rate = new AdmissionRate();
  pass(rate, { from: 0, seconds: 5, perSecond: 1_000, delayMs: 50 });
  rate.update({ now: 5_000, delayMs: 101, targetMs });
  const admitted = pass(rate, { from: 5_000, seconds: 10, perSecond: 9_000, delayMs: 100 });
  expect(Math.abs(admitted / 10_000 - 1)).toBeLessThan(0.05);
});

test("a delay beyond its target lowers the rate, and an idle loop raises it fast", () => {
  const rate = new AdmissionRate();
  pass(rate, { from: 0, seconds: 5, perSecond: 1_000, delayMs: 50 });
  pass(rate, { from: 5_000, seconds: 5, perSecond: 3_000, delayMs: 250 });
  const low = pass(rate, { from: 10_000, seconds: 1, perSecond: 3_000, delayMs: 100 });
  expect(low).toBeLessThan(500);
  pass(rate, { from: 11_000, seconds: 1, perSecond: 3_000, delayMs: 0 });
  const high = pass(rate, { from: 12_000, seconds: 1, perSecond: 3_000, delayMs: 100 });
  expect(high).toBeGreaterThan(2.5 * low);
});

test("calls that are admitted without the limit count for the previous rate", () => {
  const rate = new AdmissionRate();
  for (let at = 50; at <= 5_000; at += 50) {
    for (let call = 0; call < 50; call += 1) rate.count();
    rate.update({ now: at, delayMs: at < 4_900 ? 50 : 101, targetMs });
  }
  const admitted = pass(rate, { from: 5_000, seconds: 10, perSecond: 9_000, delayMs: 100 });
  expect(Math.abs(admitted / 10_000 - 1)).toBeLessThan(0.05);
});

test("a few calls a second are admitted at any delay", () => {
  const rate = new AdmissionRate();
  pass(rate, { from: 0, seconds: 120, perSecond: 1_000, delayMs: 5_000 });
  expect(rate.isExhausted).toBe(true);
  const admitted = pass(rate, { from: 120_000, seconds: 10, perSecond: 1_000, delayMs: 5_000 });
  expect(admitted).toBeGreaterThan(50);
  expect(admitted).toBeLessThan(200);
});

test("without a refusal for a second the rate is no longer limited", () => {
  const rate = new AdmissionRate();
  pass(rate, { from: 0, seconds: 5, perSecond: 1_000, delayMs: 50 });
  pass(rate, { from: 5_000, seconds: 5, perSecond: 5_000, delayMs: 110 });
  pass(rate, { from: 10_000, seconds: 1.1, perSecond: 100, delayMs: 20 });
  expect(pass(rate, { from: 11_100, seconds: 0.05, perSecond: 100_000, delayMs: 20 })).toBe(5_000);
});

test("a loop that is far behind admits no calls, but only if the rate is already limited", () => {
  const rate = new AdmissionRate();
  const late = { isImportant: true, isLate: true };
  expect(rate.admits({ now: 0, ...late })).toBe(true);
  pass(rate, { from: 0, seconds: 2, perSecond: 1_000, delayMs: 150 });
  expect(rate.admits({ now: 3_000, ...late })).toBe(false);
  expect(rate.admits({ now: 3_000, ...late, isLate: false })).toBe(true);
});

test("less important calls get what important ones leave", () => {
  const shares = [200, 2_000].map((important) => {
    const rate = new AdmissionRate();
    pass(rate, { from: 0, seconds: 5, perSecond: 1_000, delayMs: 50 });
    rate.update({ now: 5_000, delayMs: 101, targetMs });
    const admitted = { important: 0, other: 0 };
    for (let at = 5_000; at < 15_000; at += 1) {
      if (at % 50 === 0) rate.update({ now: at, delayMs: 100, targetMs });
      for (let call = 0; call < 2; call += 1) {
        const isImportant = ((at * 2 + call) * important) % 2_000 < important;
        if (!rate.admits({ now: at, isImportant, isLate: false })) continue;
        admitted[isImportant ? "important" : "other"] += 1;
      }
    }
    return admitted;
  });
  // Of 1,000 a second, 200 leave 800, and 2,000 leave nothing.
  expect(shares[0]?.important).toBeGreaterThan(1_990);
  expect(shares[0]?.other).toBeGreaterThan(7_500);
  expect(shares[1]?.other).toBe(0);
});
