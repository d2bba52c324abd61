import { expect, test } from "bun:test";
import {
  allTime,
  midnight,
  randomOf,
  randomRecords,
  recordOf,
} from "../../../../test/contracts/usage-fixtures.ts";
import { type UsageDimension, usageSteps } from "../../../domain/usage/usage-report.ts";
import { SqliteConnection } from "../connection/connection.ts";
import { UsageRanking } from "./usage-ranking.ts";
import { SqliteUsageReports } from "./usage-reports.ts";
import { SqliteUsageStore } from "./usage-store.ts";

function open() {
  const connection = new SqliteConnection({ path: ":memory:", busyTimeoutMs: 1 });
  const store = new SqliteUsageStore(connection);
  return { connection, store, reports: new SqliteUsageReports(connection) };
}

const divisions: readonly (readonly UsageDimension[])[] = [
  ["key"],
  ["model"],
  ["status"],
  ["target", "model"],
  ["key", "status"],
];

test.each(divisions)(
  "a series by %s of few groups is that of all, without the others",
  async (...by) => {
    const { store, reports } = open();
    await store.insert(randomRecords(randomOf(5), 600, 2));
    for (const step of usageSteps) {
      const all = await reports.series({ filter: allTime, by, limit: 1_000, step });
      const totals = new Map<string, number>();
      for (const { group, calls } of all) {
        const name = JSON.stringify(Object.values(group));
        totals.set(name, (totals.get(name) ?? 0) + calls);
      }
      const largest = [...totals]
        .toSorted(([name, one], [other, calls]) => calls - one || (name < other ? -1 : 1))
        .slice(0, 2)
        .map(([name]) => name);
      const few = await reports.series({ filter: allTime, by, limit: 2, step });
      expect(few).toEqual(
        all.filter(({ group }) => largest.includes(JSON.stringify(Object.values(group)))),
      );
    }
  },
);

test("of more groups than can be held the largest are found all the same", async () => {
  const { connection, store } = open();
  const calls = Array.from({ length: 50 }, (_, key) =>
    Array.from({ length: key < 3 ? 20 : 1 }, (_, number) =>
      recordOf(`req_${key}_${number}`, { keyId: `key_${key}`, startedAt: midnight + number }),
    ),
  );
  await store.insert(calls.flat());
  const question = { filter: allTime, by: ["key"], step: "minute" } as const;
  const ranking = new UsageRanking(question, 10);
  const piece = { step: "minute", since: midnight, until: midnight + 60_000 } as const;
  const found = await connection.use((database) => {
    ranking.addPiece(database, piece);
    while (ranking.nameSome(database)) continue;
    return database
      .query<{ key_id: string }, [string]>(
        "SELECT key_id FROM usage_groups WHERE id IN (SELECT value FROM json_each(?)) ORDER BY 1",
      )
      .all(JSON.stringify(ranking.largest(3)));
  });
  expect(found.map(({ key_id: keyId }) => keyId)).toEqual(["key_0", "key_1", "key_2"]);
  expect(ranking.largest(50).length).toBe(5);
});

test("an account that is erased while its groups are ranked is left out", async () => {
  const { connection, store } = open();
  await store.insert([recordOf("req_1"), recordOf("req_2", { accountId: "acct_b" })]);
  const ranking = new UsageRanking({ filter: allTime, by: ["account"], step: "minute" });
  await connection.use((database) => {
    ranking.addPiece(database, { step: "minute", since: 0, until: 60_000 });
    database.run("DELETE FROM usage_groups WHERE account_id = 'acct_b'");
    ranking.nameSome(database);
  });
  expect(ranking.largest(9).length).toBe(1);
});
