import { expect, test } from "bun:test";
import { type AttemptNote, type CallRouting, keptRouting, readRouting } from "./call-routing.ts";

const attempt: AttemptNote = {
  target: "east/model",
  model: "alpha-sonnet-4",
  startMs: 1.23,
  durationMs: 20.06,
  outcome: "throttled",
  mayBeBilled: false,
};
const candidate = { target: "east/model", model: "alpha-sonnet-4", why: "priority 1" };
const routing: CallRouting = { candidates: [candidate], attempts: [attempt] };

test("a stored routing is read back in tenths of a millisecond", () => {
  const kept = keptRouting(routing);
  expect(kept.attempts).toEqual([{ ...attempt, startMs: 1.2, durationMs: 20.1 }]);
  expect(readRouting(JSON.parse(JSON.stringify(kept)))).toEqual(kept);
});

test("a stored routing is bounded and includes the last attempt", () => {
  const long = "x".repeat(10_000);
  const kept = keptRouting({
    candidates: Array.from({ length: 500 }, () => ({ target: long, model: long, why: long })),
    attempts: [
      ...Array.from({ length: 99 }, () => ({ ...attempt, target: long, model: long })),
      { ...attempt, outcome: "answered" },
    ],
  });
  expect(kept.candidates).toHaveLength(64);
  expect(kept.attempts).toHaveLength(10);
  expect(kept.attempts.at(-1)?.outcome).toBe("answered");
  expect(JSON.stringify(kept).length).toBeLessThan(64 * 1024);
});

test("other values are read as undefined", () => {
  const broken: readonly unknown[] = [
    undefined,
    null,
    7,
    {},
    { candidates: [], attempts: "none" },
    { candidates: [candidate] },
  ];
  for (const value of broken) expect(readRouting(value)).toBeUndefined();
});
