import { expect, test } from "bun:test";
import { recordOf } from "../../../test/contracts/usage-fixtures.ts";
import { AdminFixture } from "../../../test/support/admin-fixture.ts";
import { createKeyTotals } from "./key-totals.ts";

const dayMs = 86_400_000;

test("days and months are those of UTC, and an answer is kept for 5 s", async () => {
  await using admin = new AdminFixture();
  const { clock, stores } = admin;
  const today = Math.floor(clock.now() / dayMs) * dayMs;
  const month = new Date(today).setUTCDate(1);
  const insert = (id: string, startedAt: number, keyId = "key_a"): Promise<unknown> =>
    stores.usage.insert([recordOf(id, { startedAt, keyId })]);
  await insert("last month", month - 1);
  await insert("this month", month);
  await insert("today", today);
  await insert("of another key", today, "key_b");
  const totalsOf = createKeyTotals(stores, clock);
  const isFirst = today === month;
  const found = await totalsOf("key_a");
  expect(found.day).toMatchObject({ since: today, calls: isFirst ? 2 : 1 });
  expect(found.month).toMatchObject({ since: month, calls: 2, inputTokens: 20, outputTokens: 40 });
  await insert("later", today);
  expect((await totalsOf("key_a")).month.calls).toBe(2);
  clock.advance(5_000);
  expect((await totalsOf("key_a")).month.calls).toBe(3);
});

test("a failure is not kept", async () => {
  await using admin = new AdminFixture();
  const { clock, stores } = admin;
  let isOut = true;
  const reports = {
    series: (query: Parameters<typeof stores.reports.series>[0]) =>
      isOut ? Promise.reject(new Error("the database is out")) : stores.reports.series(query),
  };
  const totalsOf = createKeyTotals({ ...stores, reports }, clock);
  expect(totalsOf("key_a")).rejects.toThrow("out");
  await Bun.sleep(0);
  isOut = false;
  expect((await totalsOf("key_a")).day.calls).toBe(0);
});
