import fc from "fast-check";
import { expect, test } from "bun:test";
import { systemClock } from "../domain/clock.ts";
import { wait } from "../domain/waiting/wait.ts";
import { inParallel } from "./in-parallel.ts";

const signal = new AbortController().signal;

test("results are in the order of their indexes, and at most `limit` run at once", async () => {
  const anyDelays = fc.array(fc.integer({ min: 0, max: 3 }), { maxLength: 20 });
  await fc.assert(
    fc.asyncProperty(anyDelays, fc.integer({ min: 1, max: 6 }), async (delays, limit) => {
      let running = 0;
      let most = 0;
      const work = { count: delays.length, limit, signal };
      const results = await inParallel(work, async (index) => {
        running += 1;
        most = Math.max(most, running);
        await Bun.sleep(delays[index] ?? 0);
        running -= 1;
        return index;
      });
      expect(results).toEqual([...delays.keys()]);
      expect(most).toBe(Math.min(limit, delays.length));
    }),
    { numRuns: 30 },
  );
});

test("the first failure aborts the others, starts no more, and is thrown once they have ended", async () => {
  const begun: number[] = [];
  let running = 0;
  const work = inParallel({ count: 9, limit: 3, signal }, async (index, ownSignal) => {
    begun.push(index);
    if (index === 1) throw new Error("first");
    running += 1;
    await wait(60_000, ownSignal, systemClock);
    await Bun.sleep(2);
    running -= 1;
    throw new Error("ended");
  });
  expect(await work.catch((error: unknown) => error)).toEqual(new Error("first"));
  expect([running, begun]).toEqual([0, [0, 1, 2]]);
});

test("a caller that leaves aborts all work", async () => {
  const leaving = new AbortController();
  const work = inParallel({ count: 3, limit: 3, signal: leaving.signal }, async (_, ownSignal) => {
    await wait(60_000, ownSignal, systemClock);
    return ownSignal.aborted;
  });
  leaving.abort();
  expect(await work).toEqual([true, true, true]);
});
