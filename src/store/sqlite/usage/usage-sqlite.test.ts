import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { UsageRecord } from "../../../domain/usage/usage.ts";
import {
  allTime,
  midnight,
  randomOf,
  randomRecords,
  recordOf,
} from "../../../../test/contracts/usage-fixtures.ts";
import { plansOf } from "../../../../test/support/query-plans.ts";
import { StorageUnavailable } from "../../errors.ts";
import { usageSteps } from "../../../domain/usage/usage-report.ts";
import { SqliteConnection } from "../connection/connection.ts";
import { listCalls } from "../../repositories/usage/usage-calls.ts";
import { SqlUsageReports } from "../../repositories/usage/usage-reports.ts";
import { SqliteUsageStore } from "./usage-store.ts";

const minuteMs = 60_000;

async function withFile(run: (path: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "sluice-usage-"));
  try {
    await run(join(folder, "sluice.db"));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function open(path: string, lockWaitMs?: number) {
  const connection = new SqliteConnection({ path, busyTimeoutMs: 1, lockWaitMs });
  return {
    connection,
    store: new SqliteUsageStore(connection),
    reports: new SqlUsageReports(connection),
  };
}

test("calls that arrive long after their minute are in every step", async () => {
  const { store, reports, connection } = open(":memory:");
  const records = randomRecords(randomOf(21), 200, 2);
  // The newest comes first, so that all others are too late to be folded with their minute.
  await store.insert([recordOf("newest", { startedAt: midnight + 9 * 86_400_000 })]);
  for (const record of records) await store.insert([record]);
  for (const step of usageSteps) {
    const points = await reports.series({ filter: allTime, by: [], limit: 1, step });
    expect(points.reduce((calls, point) => calls + point.calls, 0)).toBe(201);
  }
  const rows = await connection.use((database) =>
    database
      .query<{ calls: number }, []>("SELECT sum(calls) AS calls FROM usage_hours WHERE detail = 1")
      .get(),
  );
  expect(rows?.calls).toBe(200);
});

test("a partly folded minute counts every call once", async () => {
  const { store, reports, connection } = open(":memory:");
  const callOf = (key: number, id: string, startedAt: number): UsageRecord =>
    recordOf(id, { startedAt, keyId: `key_${key}`, status: 200 + (key % 7) });
  const keys = Array.from({ length: 700 }, (_, key) => key);
  await store.insert(keys.map((key) => callOf(key, `req_${key}`, midnight + key)));
  let calls = 700;
  const positionsSeen = new Set<number>();
  for (let round = 0; round < 30; round += 1) {
    // The newer call causes folding; the other one belongs to the minute being folded.
    await store.insert([callOf(round, `new_${round}`, midnight + 600_000 + round)]);
    await store.insert([callOf((round * 97) % 700, `late_${round}`, midnight + 30_000)]);
    calls += 2;
    const positions = await connection.use((database) =>
      database.query<{ group_id: number }, []>("SELECT group_id FROM usage_folds").all(),
    );
    for (const position of positions) positionsSeen.add(position.group_id);
    for (const by of [[], ["model"], ["status"], ["key", "status"]] as const) {
      for (const step of ["hour", "day"] as const) {
        const points = await reports.series({ filter: allTime, by, limit: 1_000, step });
        expect(points.reduce((sum, point) => sum + point.calls, 0)).toBe(calls);
      }
    }
  }
  expect(positionsSeen.size).toBeGreaterThan(2);
});

test("a rolled-back batch leaves no group in the cache", async () => {
  const { store, reports } = open(":memory:");
  const bad = recordOf("req_2", { durationMs: Number.NaN });
  await store.insert([recordOf("req_1"), bad]).catch(() => undefined);
  await store.insert([recordOf("req_1")]);
  const totals = await reports.totals({ filter: allTime, by: ["key"], limit: 5 });
  expect(totals).toMatchObject([{ group: { key: "key_a" }, calls: 1 }]);
});

test("latencies of a busy group stay short and accurate", async () => {
  const { store, reports, connection } = open(":memory:");
  const values = Array.from({ length: 3_000 }, (_, index) => 50 + (index % 100));
  for (let first = 0; first < values.length; first += 100) {
    const batch = values
      .slice(first, first + 100)
      .map((durationMs, index) =>
        recordOf(`req_${first + index}`, { startedAt: midnight + first * 1_000, durationMs }),
      );
    await store.insert(batch);
  }
  const longest = await connection.use((database) =>
    database
      .query<{ length: number }, []>(
        "SELECT max(octet_length(durations)) AS length FROM usage_days",
      )
      .get(),
  );
  expect(longest?.length).toBeLessThan(600);
  const [total] = await reports.totals({ filter: allTime, by: [], limit: 1 });
  expect(Math.abs((total?.duration?.p50 ?? 0) / 99 - 1)).toBeLessThan(0.05);
  expect(Math.abs((total?.duration?.p99 ?? 0) / 148 - 1)).toBeLessThan(0.05);
});

test("a minute's row stays short with any number of calls", async () => {
  const { store, reports, connection } = open(":memory:");
  const values = Array.from({ length: 20_000 }, (_, index) => 50 + (index % 100));
  let longest = 0;
  for (let first = 0; first < values.length; first += 500) {
    const batch = values
      .slice(first, first + 500)
      .map((durationMs, index) =>
        recordOf(`req_${first + index}`, { startedAt: midnight + (first % 60_000), durationMs }),
      );
    await store.insert(batch);
    const row = await connection.use((database) =>
      database
        .query<{ length: number }, []>(
          "SELECT max(octet_length(durations)) AS length FROM usage_minutes",
        )
        .get(),
    );
    longest = Math.max(longest, row?.length ?? 0);
  }
  expect(longest).toBeLessThan(2_100);
  const [total] = await reports.totals({ filter: allTime, by: [], limit: 1 });
  expect(total?.calls).toBe(20_000);
  expect(Math.abs((total?.duration?.p50 ?? 0) / 99 - 1)).toBeLessThan(0.05);
  expect(Math.abs((total?.duration?.p99 ?? 0) / 148 - 1)).toBeLessThan(0.05);
});

test("a batch waits while another process writes, then is unavailable, and loses nothing", () =>
  withFile(async (path) => {
    await using connection = open(path, 30).connection;
    const store = new SqliteUsageStore(connection);
    await store.insert([recordOf("req_1")]);
    using other = new Database(path);
    other.run("BEGIN IMMEDIATE");
    const failure = await store.insert([recordOf("req_2")]).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(StorageUnavailable);
    other.run("ROLLBACK");
    await store.insert([recordOf("req_2")]);
    const reports = new SqlUsageReports(connection);
    const totals = await reports.totals({ filter: allTime, by: [], limit: 1 });
    expect(totals).toMatchObject([{ calls: 2 }]);
  }));

test("an account that another process erases is counted in new groups afterwards", () =>
  withFile(async (path) => {
    const one = open(path);
    const other = open(path);
    await one.store.insert([recordOf("req_1"), recordOf("req_2")]);
    for (let removed = 1; removed > 0;) removed = await other.store.erase("acct_a", 100);
    await one.store.insert([recordOf("req_3")]);
    const totals = await one.reports.totals({ filter: allTime, by: ["account"], limit: 5 });
    expect(totals).toMatchObject([{ group: { account: "acct_a" }, calls: 1 }]);
    await one.connection.close();
    await other.connection.close();
  }));

test("minutes that are pruned before they were folded count in hours and days", async () => {
  const { store, reports } = open(":memory:");
  await store.insert([recordOf("req_1", { startedAt: midnight })]);
  const later = midnight + 3_600_000;
  const keep = { calls: undefined, hours: undefined, days: undefined };
  expect(await store.prune({ ...keep, minutes: later }, 10)).toBe(1);
  for (const step of ["hour", "day"] as const) {
    const points = await reports.series({ filter: allTime, by: [], limit: 1, step });
    expect(points).toMatchObject([{ at: midnight, calls: 1 }]);
  }
});

test("the newest call is in the hour and the day at once", async () => {
  const { store, reports } = open(":memory:");
  await store.insert([recordOf("req_1", { startedAt: midnight })]);
  await store.insert([recordOf("req_2", { startedAt: midnight + 10 * minuteMs })]);
  const filter = { since: midnight, until: midnight + 86_400_000 };
  for (const step of usageSteps) {
    const points = await reports.series({ filter, by: [], limit: 1, step });
    expect(points.reduce((calls, point) => calls + point.calls, 0)).toBe(2);
  }
});

test("any number of calls that may be billed twice is found in short steps", async () => {
  const { store, reports, connection } = open(":memory:");
  const many = Array.from({ length: 9_000 }, (_, position) =>
    recordOf(`req_${position}`, {
      startedAt: midnight + Math.floor(position / 3),
      keyId: position % 4_000 === 7 ? "key_rare" : "key_a",
      mayBeBilledTwice: position % 9 !== 0,
    }),
  );
  await store.insert(many);
  let steps = 0;
  const read: typeof connection.read = (work) => {
    steps += 1;
    return connection.read(work);
  };
  const list = (filter: object) =>
    listCalls({ read }, { ...allTime, mayBeBilledTwice: true, ...filter }, { limit: 100 });
  const rare = await list({ keyId: "key_rare" });
  expect(rare.items.map(({ id }) => id)).toEqual(["req_8007", "req_4007", "req_7"]);
  expect(steps).toBe(4);
  expect((await list({})).items.every(({ mayBeBilledTwice }) => mayBeBilledTwice)).toBe(true);
  expect(steps).toBe(5);
  const plans = await plansOf(connection, () =>
    list({ keyId: "key_rare", model: "alpha-sonnet-4" }),
  );
  const ofUsage = plans.filter(({ sql }) => /from "usage"/.test(sql));
  expect(ofUsage).toHaveLength(8);
  for (const { steps: plan } of ofUsage) {
    expect(plan).toEqual([expect.stringContaining("usage USING")]);
    expect(plan[0]).toMatch(/^SEARCH usage USING (COVERING )?INDEX usage_billed_twice/);
  }
  await connection.use((database) => {
    database.run("UPDATE usage SET routing = 'no JSON' WHERE id = 'req_7'");
  });
  // An unreadable routing does not hide the call.
  expect(await reports.call("req_7")).toMatchObject({ id: "req_7", routing: undefined });
  await connection.close();
});

test("lists of calls follow an index, and sums their primary key", async () => {
  const { store, reports, connection } = open(":memory:");
  await store.insert([recordOf("req_1")]);
  const plans = await plansOf(connection, async () => {
    const filter = { ...allTime, model: "alpha-sonnet-4" };
    await reports.totals({ filter, by: ["key"], limit: 5 });
    await reports.series({ filter: { ...allTime }, by: ["status"], limit: 5, step: "minute" });
    for (const one of [
      filter,
      { ...allTime, keyId: "key_a" },
      { ...allTime, accountId: "acct_a" },
    ]) {
      await reports.calls(one, { limit: 5 });
    }
  });
  const explained = plans.flatMap(({ steps }) => steps);
  // Groups and horizons are few; everything else grows with the calls.
  const scans = explained.filter((line) =>
    /^SCAN (?!CONSTANT|usage_groups|usage_horizons|json_each)/.test(line),
  );
  expect(scans).toEqual([]);
  expect(explained.join("\n")).toContain("USING INDEX usage_by_key");
  expect(explained.join("\n")).toContain("USING INDEX usage_by_account");
  expect(explained.join("\n")).toContain("USING PRIMARY KEY (detail=? AND at>? AND at<?)");
});
