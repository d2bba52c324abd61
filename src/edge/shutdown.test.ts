import { expect, test } from "bun:test";
import { Shutdown } from "./shutdown.ts";

const steps = { isAnnounced: true, preStopMs: 60, drainTimeoutMs: 40, endCalls: () => undefined };

test("a shutdown is announced first, refuses then, and ends calls that outlast it", async () => {
  const shutdown = new Shutdown();
  const seen: string[] = [];
  const state = (): string => `${shutdown.hasBegun} ${shutdown.isRefusing}`;
  const openCalls = (): number => {
    seen.push(state());
    return seen.includes("ended") ? 0 : 1;
  };
  expect(state()).toBe("false false");
  const ended = shutdown.drain({ ...steps, openCalls, endCalls: () => seen.push("ended") });
  expect(state()).toBe("true false");
  expect(seen).toEqual([]);
  await ended;
  expect(new Set(seen)).toEqual(new Set(["true true", "ended"]));
  expect(seen.at(-1)).toBe("true true");
});

test("a shutdown that is not announced refuses at once", async () => {
  const shutdown = new Shutdown();
  const hour = 3_600_000;
  const openCalls = (): number => 0;
  const ended = shutdown.drain({ ...steps, isAnnounced: false, preStopMs: hour, openCalls });
  expect(shutdown.isRefusing).toBe(true);
  await ended;
});

test("a second drain does nothing", async () => {
  const shutdown = new Shutdown();
  const openCalls = (): number => 0;
  shutdown.refuse();
  let ends = 0;
  await shutdown.drain({ ...steps, openCalls, endCalls: () => (ends += 1) });
  expect(ends).toBe(0);
});
