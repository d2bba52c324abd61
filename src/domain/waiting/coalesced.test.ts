import { expect, test } from "bun:test";
import { Coalesced } from "./coalesced.ts";

/** A task whose runs end when the test says so. */
class Bench {
  readonly runs: PromiseWithResolvers<number>[] = [];
  readonly coalesced = new Coalesced(() => {
    const run = Promise.withResolvers<number>();
    this.runs.push(run);
    return run.promise;
  });
}

test("requests during a run share one that begins after it", async () => {
  const { runs, coalesced } = new Bench();
  const first = coalesced.run();
  const others = [coalesced.run(), coalesced.run()];
  expect(runs).toHaveLength(1);
  runs[0]?.resolve(1);
  expect(await first).toBe(1);
  while (runs.length < 2) await Promise.resolve();
  const last = coalesced.run();
  runs[1]?.resolve(2);
  expect(await Promise.all(others)).toEqual([2, 2]);
  while (runs.length < 3) await Promise.resolve();
  runs[2]?.resolve(3);
  expect(await last).toBe(3);
});

test("a failed run fails only its own requests", async () => {
  const { runs, coalesced } = new Bench();
  const first = coalesced.run();
  const second = coalesced.run();
  runs[0]?.reject(new Error("gone"));
  expect(await first.catch(String)).toBe("Error: gone");
  while (runs.length < 2) await Promise.resolve();
  runs[1]?.resolve(2);
  expect(await second).toBe(2);
});
