import { expect, test } from "bun:test";
import {
  allTime,
  listIds,
  midnight,
  recordOf,
  removeAll,
} from "../../../../../test/contracts/usage-fixtures.ts";
import { RefusedRows } from "../../../errors.ts";
import { usageSteps } from "../../../../domain/usage/usage-report.ts";
import { SqliteConnection } from "../../connection/connection.ts";
import { SqlControlStore } from "../../../repositories/control-store.ts";
import type { DroppedRows } from "../../../store.ts";
import { SqlUsageReports } from "../../../repositories/usage/usage-reports.ts";
import { SqliteUsageStore } from "../usage-store.ts";

function open() {
  const connection = new SqliteConnection({ path: ":memory:", busyTimeoutMs: 1 });
  const dropped: DroppedRows[] = [];
  const reports = new SqlUsageReports(connection);
  const countCalls = async (): Promise<readonly number[]> => {
    const ofSteps = usageSteps.map(async (step) => {
      const points = await reports.series({ filter: allTime, by: [], limit: 1, step });
      return points.reduce((calls, point) => calls + point.calls, 0);
    });
    return Promise.all(ofSteps);
  };
  return {
    control: new SqlControlStore(connection),
    store: new SqliteUsageStore(connection, (rows) => dropped.push(rows)),
    dropped,
    reports,
    countCalls,
  };
}

test("late calls of an erased account are neither stored nor counted", async () => {
  const { control, store, reports, countCalls, dropped } = open();
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
  expect(dropped).toEqual([{ ofErasedAccounts: 3, tooOld: 0 }]);
});

test("a mark that was rolled back refuses nothing", async () => {
  const { control, store, reports } = open();
  const undone = control.change(async ({ accounts }) => {
    await accounts.markErased("acct_a", midnight);
    throw new Error("another step failed");
  });
  expect(await undone.catch((error: unknown) => error)).toBeInstanceOf(Error);
  await store.insert([recordOf("req_1")]);
  expect(await listIds(reports)).toEqual(["req_1"]);
});

const keepSums = { minutes: undefined, hours: undefined, days: undefined };

test("calls that were removed by retention and arrive again are counted once", async () => {
  const { store, reports, countCalls, dropped } = open();
  const calls = [1, 2, 3, 4, 5].map((hour) =>
    recordOf(`req_${hour}`, { startedAt: midnight + hour * 3_600_000 }),
  );
  await store.insert(calls);
  const limits = { ...keepSums, calls: midnight + 4 * 3_600_000 };
  // Two of three expired calls: the third one stays.
  expect(await store.prune(limits, 2)).toBe(2);
  await store.insert(calls);
  expect(await listIds(reports)).toEqual(["req_5", "req_4", "req_3"]);
  expect(dropped).toEqual([{ ofErasedAccounts: 0, tooOld: 2 }]);
  await removeAll(() => store.prune(limits, 2));
  await store.insert(calls);
  expect(await listIds(reports)).toEqual(["req_5", "req_4"]);
  expect(await countCalls()).toEqual([5, 5, 5]);
  expect(dropped.map(({ tooOld }) => tooOld)).toEqual([2, 3]);
});

test("a late call is stored while no call of its time was removed", async () => {
  const { store, countCalls, dropped } = open();
  await store.insert([1, 2, 3].map((at) => recordOf(`req_${at}`, { startedAt: midnight + at })));
  const limits = { ...keepSums, calls: midnight + 1_000_000 };
  await removeAll(() => store.prune(limits, 2));
  await store.insert([recordOf("req_late", { startedAt: midnight + 4 })]);
  expect(await countCalls()).toEqual([4, 4, 4]);
  await store.insert([recordOf("req_too_late", { startedAt: midnight + 3 })]);
  expect(await countCalls()).toEqual([4, 4, 4]);
  expect(dropped).toEqual([{ ofErasedAccounts: 0, tooOld: 1 }]);
});

test("a call with an invalid time is refused, not dropped as too old", async () => {
  const { store, dropped } = open();
  const odd = recordOf("req_1", { startedAt: Number.NaN });
  expect(await store.insert([odd]).catch((error: unknown) => error)).toBeInstanceOf(RefusedRows);
  const nobody = { ...recordOf("req_2"), accountId: {} as string };
  expect(await store.insert([nobody]).catch((error: unknown) => error)).toBeInstanceOf(RefusedRows);
  expect(dropped).toEqual([]);
});
