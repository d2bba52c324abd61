import { expect, test } from "bun:test";
import { sql } from "kysely";
import {
  allTime,
  listIds,
  midnight,
  recordOf,
  removeAll,
} from "../../../../test/contracts/usage-fixtures.ts";
import { describeWithPostgres } from "../../../../test/support/postgres-databases.ts";
import { SqlUsageReports } from "../../repositories/usage/usage-reports.ts";
import type { DroppedRows } from "../../store.ts";
import { listPartitions } from "./usage-partitions.ts";
import { PostgresUsageStore } from "./usage-store.ts";

const dayMs = 86_400_000;

describeWithPostgres(({ connect }) => {
  test("whole days of calls are dropped, the sums stay, and late calls are not counted again", async () => {
    const connection = (await connect()).inLane("usage");
    const dropped: DroppedRows[] = [];
    const store = new PostgresUsageStore(connection, (rows) => void dropped.push(rows));
    const reports = new SqlUsageReports(connection);
    const records = [0, 1, 2].flatMap((day) =>
      [0, dayMs - 1].map((offset) =>
        recordOf(`req_${day}_${offset}`, { startedAt: midnight + day * dayMs + offset }),
      ),
    );
    await store.insert(records);
    const days = () => connection.read(listPartitions);
    expect((await days()).map(({ name }) => name)).toEqual([
      "usage_2026_03_01",
      "usage_2026_03_02",
      "usage_2026_03_03",
    ]);

    const keepAll = { minutes: undefined, hours: undefined, days: undefined };
    const limits = { ...keepAll, calls: midnight + 2 * dayMs + 1 };
    await removeAll(() => store.prune(limits, 100));
    expect(await listIds(reports)).toEqual([`req_2_${dayMs - 1}`]);
    expect((await days()).map(({ name }) => name)).toEqual(["usage_2026_03_03"]);

    await store.insert(records);
    const [total] = await reports.totals({ filter: allTime, by: [], limit: 1 });
    expect(total?.calls).toBe(6);
    expect(dropped).toEqual([{ ofErasedAccounts: 0, tooOld: 5 }]);
  });

  test("a day is dropped in a transaction that does nothing else, because readers wait for it", async () => {
    const connection = (await connect()).inLane("usage");
    const store = new PostgresUsageStore(connection);
    await store.insert([
      recordOf("req_1", { startedAt: midnight }),
      recordOf("req_2", { startedAt: midnight + dayMs }),
    ]);
    const minutes = sql`select at from usage_minutes`;
    const countMinutes = async (): Promise<number> =>
      (await connection.read((queries) => minutes.execute(queries))).rows.length;
    const until = midnight + dayMs;
    const limits = { calls: until, minutes: until, hours: undefined, days: undefined };
    expect(await store.prune(limits, 100)).toBe(1);
    expect(await connection.read(listPartitions)).toHaveLength(1);
    expect(await countMinutes()).toBe(2);
    await removeAll(() => store.prune(limits, 100));
    expect(await countMinutes()).toBe(1);
  });

  test("a day that somebody reads for long keeps nothing else from being removed", async () => {
    const whole = await connect();
    const connection = whole.inLane("usage");
    const store = new PostgresUsageStore(connection);
    await store.insert([
      recordOf("req_1", { startedAt: midnight }),
      recordOf("req_2", { startedAt: midnight + dayMs }),
    ]);
    const hasRead = Promise.withResolvers<void>();
    const ends = Promise.withResolvers<void>();
    const reading = connection.read(async (queries) => {
      await sql`select * from usage`.execute(queries);
      hasRead.resolve();
      await ends.promise;
    });
    await hasRead.promise;
    const until = midnight + dayMs;
    const limits = { calls: until, minutes: until, hours: undefined, days: undefined };
    expect(await store.prune(limits, 100)).toBe(1);
    const { rows } = await whole.read((queries) =>
      sql`select at from usage_minutes`.execute(queries),
    );
    expect(rows).toEqual([{ at: until }]);
    expect(await connection.read(listPartitions)).toHaveLength(2);
    ends.resolve();
    await reading;
    expect(await store.prune(limits, 100)).toBe(1);
    expect(await connection.read(listPartitions)).toHaveLength(1);
  });
});
