import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { allTime, midnight, recordOf } from "../../../../test/contracts/usage-fixtures.ts";
import { plansOf } from "../../../../test/support/query-plans.ts";
import { StorageUnavailable } from "../../errors.ts";
import { SqliteConnection } from "../../sqlite/connection/connection.ts";
import { isFaultOfData } from "../../sqlite/connection/sqlite-trouble.ts";
import { listCalls } from "./usage-calls.ts";
import { SqlUsageReports } from "./usage-reports.ts";
import { SqlUsageStore } from "./usage-store.ts";
import { testPeppers } from "../../../../test/support/test-peppers.ts";

function open(path: string, lockWaitMs?: number) {
  const connection = new SqliteConnection({ path, busyTimeoutMs: 1, lockWaitMs });
  return {
    connection,
    store: new SqlUsageStore(connection, { isFaultOfData, clock: Date, peppers: testPeppers() }),
    reports: new SqlUsageReports(connection),
  };
}

test("the latencies of a busy group stay short and accurate", async () => {
  const { store, reports, connection } = open(":memory:");
  const values = Array.from({ length: 3_000 }, (_, index) => 50 + (index % 100));
  for (let first = 0; first < values.length; first += 100) {
    const batch = values
      .slice(first, first + 100)
      .map((durationMs, index) =>
        recordOf(`req_${first + index}`, { startedAt: midnight + first, durationMs }),
      );
    await store.insert(batch);
  }
  const longest = await connection.use((database) =>
    database
      .query<{ length: number }, []>("SELECT max(length(durations)) AS length FROM usage_sums")
      .get(),
  );
  expect(longest?.length).toBeLessThan(100);
  const [total] = await reports.totals({ filter: allTime, by: [], limit: 1 });
  expect(Math.abs((total?.duration?.p50 ?? 0) / 99 - 1)).toBeLessThan(0.05);
  expect(Math.abs((total?.duration?.p99 ?? 0) / 148 - 1)).toBeLessThan(0.05);
});

test("a batch waits while another process writes, then is unavailable, and loses nothing", async () => {
  const folder = mkdtempSync(join(tmpdir(), "sluice-usage-"));
  const path = join(folder, "sluice.db");
  try {
    const { store, reports, connection } = open(path, 30);
    await store.insert([recordOf("req_1")]);
    using other = new Database(path);
    other.run("BEGIN IMMEDIATE");
    const failure = await store.insert([recordOf("req_2")]).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(StorageUnavailable);
    other.run("ROLLBACK");
    await store.insert([recordOf("req_2")]);
    const totals = await reports.totals({ filter: allTime, by: [], limit: 1 });
    expect(totals).toMatchObject([{ calls: 2 }]);
    await connection.close();
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test("calls that may be billed twice are found by their own index", async () => {
  const { store, reports, connection } = open(":memory:");
  const many = Array.from({ length: 900 }, (_, position) =>
    recordOf(`req_${position}`, {
      startedAt: midnight + Math.floor(position / 3),
      keyId: position % 400 === 7 ? "key_rare" : "key_a",
      mayBeBilledTwice: position % 9 !== 0,
    }),
  );
  await store.insert(many);
  const list = (filter: object) =>
    listCalls(connection, { ...allTime, mayBeBilledTwice: true, ...filter }, { limit: 100 });
  const rare = await list({ keyId: "key_rare" });
  expect(rare.items.map(({ id }) => id)).toEqual(["req_807", "req_407", "req_7"]);
  expect((await list({})).items.every(({ mayBeBilledTwice }) => mayBeBilledTwice)).toBe(true);
  const plans = await plansOf(connection, () =>
    list({ keyId: "key_rare", model: "alpha-sonnet-4" }),
  );
  for (const { steps: plan } of plans) {
    expect(plan).toEqual([
      expect.stringMatching(/^SEARCH usage USING (COVERING )?INDEX usage_billed_twice/),
    ]);
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
    await reports.totals({ filter: allTime, by: ["key"], limit: 5 });
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
  expect(explained.join("\n")).toContain("USING PRIMARY KEY (grain=? AND at>? AND at<?)");
});
