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
import { UsageRanking } from "../../repositories/usage/usage-ranking.ts";
import { SqlUsageReports } from "../../repositories/usage/usage-reports.ts";
import { SqliteUsageStore } from "./usage-store.ts";

function open() {
  const connection = new SqliteConnection({ path: ":memory:", busyTimeoutMs: 1 });
  const store = new SqliteUsageStore(connection);
  return { connection, store, reports: new SqlUsageReports(connection) };
}

const divisions: readonly (readonly UsageDimension[])[] = [
  ["key"],
  ["model"],
  ["status"],
  ["target", "model"],
  ["key", "status"],
];

test.each(divisions)(
  "a limited series by %s equals the full one without the other groups",
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

test("the largest groups are found among more than can be held", async () => {
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
  const found = await connection.read(async (queries) => {
    await ranking.addPiece(queries, piece);
    while (await ranking.nameSome(queries)) continue;
    return queries
      .selectFrom("usageGroups")
      .select("keyId")
      .where("id", "in", ranking.largest(3))
      .orderBy("keyId")
      .execute();
  });
  expect(found.map(({ keyId }) => keyId)).toEqual(["key_0", "key_1", "key_2"]);
  expect(ranking.largest(50).length).toBe(5);
});

test("an account that is erased during the ranking is left out", async () => {
  const { connection, store } = open();
  await store.insert([recordOf("req_1"), recordOf("req_2", { accountId: "acct_b" })]);
  const ranking = new UsageRanking({ filter: allTime, by: ["account"], step: "minute" });
  await connection.change(async (queries) => {
    await ranking.addPiece(queries, { step: "minute", since: 0, until: 60_000 });
    await queries.deleteFrom("usageGroups").where("accountId", "=", "acct_b").execute();
    await ranking.nameSome(queries);
  });
  expect(ranking.largest(9).length).toBe(1);
});
