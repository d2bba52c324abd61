import { expect, test } from "bun:test";
import { joinsContract } from "../../../../test/contracts/joins-contract.ts";
import { SteppedClock } from "../../../../test/support/stepped-clock.ts";
import { MemoryJoins } from "./joins.ts";

const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

joinsContract("memory", () => {
  const clock = new SteppedClock();
  const joins = new MemoryJoins(clock);
  const one = joins.ofProcess();
  const other = joins.ofProcess();
  return { one, other, oneDies: () => one.end(), settle, waitLong: () => clock.runScheduled() };
});

test("what processes have claimed before is theirs, and nothing is left of it in the end", async () => {
  const clock = new SteppedClock();
  const joins = new MemoryJoins(clock);
  const one = joins.ofProcess();
  const other = joins.ofProcess();
  const held = { id: "a", requestDigest: "content", isUnsaved: false };
  one.restore([held, { ...held, id: "b", isUnsaved: true }]);
  other.restore([held]);
  expect(other.claim({ ...held, requestDigest: "different" })).toBe("reused");
  expect(other.claim({ ...held, id: "b" })).toBe("unsaved");
  const waiting = other.claim(held);
  one.end();
  expect(await waiting).toBe("ended");
  expect([joins.size, clock.scheduled.size]).toEqual([0, 0]);
});
