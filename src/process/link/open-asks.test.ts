import { expect, test } from "bun:test";
import { SteppedClock } from "../../../test/support/stepped-clock.ts";
import { LinkLost } from "./link-errors.ts";
import { OpenAsks } from "./open-asks.ts";

test("each ask is given up after its own time, and one timer serves them all", async () => {
  const clock = new SteppedClock();
  const asks = new OpenAsks(clock);
  const ends: string[] = [];
  for (const [name, timeoutMs] of Object.entries({ c: 300, a: 100, b: 200, d: 400 })) {
    asks
      .open(timeoutMs, () => undefined)
      .then(
        () => ends.push(`${name} answered`),
        (error: unknown) => ends.push(error instanceof LinkLost ? name : String(error)),
      );
  }
  expect(clock.scheduled.size).toBe(1);
  for (const expected of [["a"], ["a", "b"], ["a", "b", "c"]]) {
    clock.advance(100);
    await clock.runScheduled();
    expect(ends).toEqual(expected);
    expect(clock.scheduled.size).toBe(1);
  }
  asks.take(4)?.resolve(undefined);
  clock.advance(100);
  await clock.runScheduled();
  expect(ends).toEqual(["a", "b", "c", "d answered"]);
  expect(clock.scheduled.size).toBe(0);
});

test("an ask that cannot be sent fails with the reason, and is forgotten", async () => {
  const clock = new SteppedClock();
  const asks = new OpenAsks(clock);
  const failed = asks.open(100, () => {
    throw new RangeError("too long");
  });
  expect(await failed.catch((error: unknown) => String(error))).toBe("RangeError: too long");
  expect([asks.take(1), clock.scheduled.size]).toEqual([undefined, 0]);
});
