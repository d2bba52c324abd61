import { expect, test } from "bun:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import type { ControlRetention } from "./control-store.ts";
import { RetentionJob, type RetentionOptions } from "./retention-job.ts";
import type { UsageRetention } from "./store.ts";

const hourMs = 3_600_000;
const settings = {
  callsMs: 90 * 24 * hourMs,
  hoursMs: 91 * 24 * hourMs,
  daysMs: 1_000 * 24 * hourMs,
  auditMs: 2_000 * 24 * hourMs,
  revokedKeysMs: 92 * 24 * hourMs,
  intervalMs: hourMs,
  batchRows: 10,
};

/** A job over tables with this many expired rows, and its calls. */
function jobOver(rows: { usage: number; control: number }, values: Partial<RetentionOptions> = {}) {
  const asked: (UsageRetention | ControlRetention)[] = [];
  const failures: unknown[] = [];
  const removals: number[] = [];
  const runs = { done: 0 };
  const take = (table: "usage" | "control", limit: number): Promise<number> => {
    const taken = Math.min(limit, rows[table]);
    rows[table] -= taken;
    return Promise.resolve(taken);
  };
  const clock = new ManualClock();
  const job = new RetentionJob({
    usage: {
      prune: (limits, limit) => {
        asked.push(limits);
        return take("usage", limit);
      },
    },
    control: {
      prune: (limits, limit) => {
        asked.push(limits);
        return take("control", limit);
      },
    },
    settings,
    clock,
    isOwn: () => Promise.resolve(true),
    onFailed: (error) => failures.push(error),
    onDone: () => (runs.done += 1),
    onRemoved: (count) => removals.push(count),
    ...values,
  });
  return { job, rows, asked, failures, removals, runs, now: clock.now() };
}

const never = new AbortController().signal;

test("a run removes nothing while another machine runs the job", async () => {
  const { job, rows, runs } = jobOver(
    { usage: 35, control: 12 },
    { isOwn: () => Promise.resolve(false) },
  );
  expect(await job.runOnce(never)).toBe(0);
  expect(rows).toEqual({ usage: 35, control: 12 });
  expect(runs).toEqual({ done: 0 });
});

test("a run removes batch after batch until nothing is left, and reports the count", async () => {
  const { job, rows, removals, runs } = jobOver({ usage: 35, control: 12 });
  expect(await job.runOnce(never)).toBe(47);
  expect(rows).toEqual({ usage: 0, control: 0 });
  expect(removals).toEqual([47]);
  expect(await job.runOnce(never)).toBe(0);
  expect(removals).toEqual([47]);
  expect(runs.done).toBe(2);
});

test("each kind of data has its own age; access ends now and replies after a day", async () => {
  const { job, asked, now } = jobOver({ usage: 0, control: 0 });
  await job.runOnce(never);
  expect(asked).toEqual([
    {
      calls: now - settings.callsMs,
      hours: now - settings.hoursMs,
      days: now - settings.daysMs,
    },
    {
      audit: now - settings.auditMs,
      keys: now - settings.revokedKeysMs,
      access: now,
      replies: now - 24 * hourMs,
    },
  ]);
});

test("a run is bounded, and the next one continues", async () => {
  const { job, rows } = jobOver({ usage: 10_015, control: 0 });
  expect(await job.runOnce(never)).toBe(10_000);
  expect(await job.runOnce(never)).toBe(15);
  expect(rows.usage).toBe(0);
});

test("other work of the process runs between two batches", async () => {
  const turns: string[] = [];
  const { job } = jobOver(
    { usage: 0, control: 0 },
    {
      usage: {
        prune: () => {
          turns.push("batch");
          setImmediate(() => turns.push("other"));
          return Promise.resolve(turns.length < 6 ? 1 : 0);
        },
      },
    },
  );
  await job.runOnce(never);
  expect(turns.slice(0, 6)).toEqual(["batch", "other", "batch", "other", "batch", "other"]);
});

test("a failure is reported and ends the run, and rows removed before it count", async () => {
  const failure = new Error("locked");
  const { job, failures, removals, runs } = jobOver(
    { usage: 25, control: 0 },
    { control: { prune: () => Promise.reject(failure) } },
  );
  expect(await job.runOnce(never)).toBe(25);
  expect(failures).toEqual([failure]);
  expect(removals).toEqual([25]);
  expect(runs.done).toBe(0);
});

test("a stopped job removes nothing more, and waits for the running batch", async () => {
  const started = Promise.withResolvers<void>();
  const batch = Promise.withResolvers<number>();
  let batches = 0;
  const { job } = jobOver(
    { usage: 0, control: 0 },
    {
      usage: {
        prune: () => {
          batches += 1;
          started.resolve();
          return batch.promise;
        },
      },
    },
  );
  job.start();
  await started.promise;
  let isStopped = false;
  const stopped = job.stop().then(() => (isStopped = true));
  await Bun.sleep(1);
  expect(isStopped).toBe(false);
  batch.resolve(10);
  await stopped;
  expect(batches).toBe(1);
});

test("a job runs at once and again after every interval", async () => {
  const enough = Promise.withResolvers<void>();
  let runs = 0;
  const { job } = jobOver(
    { usage: 0, control: 0 },
    {
      settings: { ...settings, intervalMs: 1 },
      usage: {
        prune: () => {
          runs += 1;
          if (runs === 3) enough.resolve();
          return Promise.resolve(0);
        },
      },
    },
  );
  job.start();
  job.start();
  await enough.promise;
  await job.stop();
  expect(runs).toBeGreaterThanOrEqual(3);
});

test("a held job removes nothing until it may continue", async () => {
  let isHeld = true;
  const { job, rows } = jobOver({ usage: 5, control: 0 }, { isHeld: () => isHeld });
  job.start();
  await Bun.sleep(20);
  expect(rows.usage).toBe(5);
  isHeld = false;
  while (rows.usage > 0) await Bun.sleep(20);
  await job.stop();
});
