import { expect, test } from "bun:test";
import { allTime, listIds, midnight, recordOf, removeAll } from "../contract/usage-fixtures.ts";
import { usageSteps } from "../usage-reports.ts";
import { SqliteConnection } from "./connection.ts";
import { SqliteControlStore } from "./control-store.ts";
import { SqliteUsageReports } from "./usage-reports.ts";
import { SqliteUsageStore } from "./usage-store.ts";

function open() {
  const connection = new SqliteConnection({ path: ":memory:", busyTimeoutMs: 1 });
  const reports = new SqliteUsageReports(connection);
  const countCalls = async (): Promise<readonly number[]> => {
    const ofSteps = usageSteps.map(async (step) => {
      const points = await reports.series({ filter: allTime, by: [], limit: 1, step });
      return points.reduce((calls, point) => calls + point.calls, 0);
    });
    return Promise.all(ofSteps);
  };
  return {
    control: new SqliteControlStore(connection),
    store: new SqliteUsageStore(connection),
    reports,
    countCalls,
  };
}

test("calls of an erased account that come after it are neither stored nor counted", async () => {
  const { control, store, reports, countCalls } = open();
  const calls = ["acct_a", "acct_b"].flatMap((accountId) =>
    [1, 2, 3].map((number) =>
      recordOf(`req_${accountId}_${number}`, { accountId, startedAt: midnight + number }),
    ),
  );
  await store.insert(calls.slice(0, 4));
  await control.change(({ accounts }) => accounts.markErased("acct_a", midnight));
  await control.change(({ accounts }) => accounts.markErased("acct_a", midnight + 1));
  await removeAll(() => store.erase("acct_a", 500));
  await store.insert(calls);
  expect(await listIds(reports)).toEqual(["req_acct_b_3", "req_acct_b_2", "req_acct_b_1"]);
  expect(await countCalls()).toEqual([3, 3, 3]);
  const groups = await reports.totals({ filter: allTime, by: ["account"], limit: 9 });
  expect(groups.map(({ group }) => group.account)).toEqual(["acct_b"]);
});

test("a mark that was undone with its transaction holds nothing back", async () => {
  const { control, store, reports } = open();
  const undone = control.change(async ({ accounts }) => {
    await accounts.markErased("acct_a", midnight);
    throw new Error("another step failed");
  });
  expect(await undone.catch((error: unknown) => error)).toBeInstanceOf(Error);
  await store.insert([recordOf("req_1")]);
  expect(await listIds(reports)).toEqual(["req_1"]);
});
