import { beforeEach, describe, expect, test } from "bun:test";
import { RefusedRows } from "../../src/store/errors.ts";
import type { UsageRetention } from "../../src/store/store.ts";
import type { RepriceEnd } from "../../src/store/costs.ts";
import type { UsageRecord, UsageStep } from "../../src/domain/usage/usage.ts";
import {
  allTime,
  type Ledger,
  listIds,
  midnight,
  randomOf,
  randomRecords,
  recordOf,
  removeAll,
} from "./usage-fixtures.ts";

export { recordOf } from "./usage-fixtures.ts";

const dayMs = 86_400_000;
const keepAll: UsageRetention = { calls: 0, hours: 0, days: 0 };

/** What every usage store must do. */
export function usageStoreContract(name: string, create: () => Ledger | Promise<Ledger>): void {
  describe(`usage store contract: ${name}`, () => {
    let ledger: Ledger;
    beforeEach(async () => {
      ledger = await create();
    });

    async function countCalls(): Promise<number> {
      const totals = await ledger.reports.totals({ filter: allTime, by: [], limit: 1 });
      return totals[0]?.calls ?? 0;
    }

    async function countSteps(step: UsageStep): Promise<number> {
      const filter = { since: midnight, until: midnight + 3 * dayMs };
      return (await ledger.reports.series({ filter, by: [], limit: 1, step })).length;
    }

    test("a record comes back as it was given, absent values included", async () => {
      const whole = recordOf("req_1", { startedAt: 20_000 });
      const refused = recordOf("req_2", {
        target: undefined,
        outcome: "failed",
        status: 429,
        code: "rate_limit_exceeded",
        isStreamed: false,
        attempts: 0,
        firstEventMs: undefined,
        usageSource: "estimated",
      });
      await ledger.store.insert([whole, refused]);
      const { items } = await ledger.reports.calls(allTime, { limit: 10 });
      expect(items).toEqual([whole, refused]);
      expect(await ledger.reports.call("req_2")).toEqual(refused);
      expect(await ledger.reports.call("req_3")).toBeUndefined();
    });

    test("what a call costs comes back with it, and the budgets it was under do not", async () => {
      const cost = {
        cacheWriteTokens: 7,
        cacheWrite1hTokens: 5,
        images: 2,
        serviceTier: "priority",
        costNano: 9_000_000_000_000_001,
        priceVersion: 12,
      };
      const free = recordOf("req_2", { costNano: 0 });
      const charge = { process: "p1", budgetIds: ["bud_1"] };
      await ledger.store.insert([recordOf("req_1", { ...cost, charge }), free, recordOf("req_3")]);
      expect(await ledger.reports.call("req_1")).toEqual(recordOf("req_1", cost));
      expect(await ledger.reports.call("req_2")).toEqual(free);
      expect(await ledger.reports.call("req_3")).toEqual(recordOf("req_3"));
    });

    test("calls are priced again in parts, and the sums of their hours and days move", async () => {
      const priced = (id: string, values: Partial<UsageRecord> = {}) =>
        recordOf(id, { cachedInputTokens: 0, startedAt: midnight + 5, ...values });
      const calls = [
        priced("req_1"),
        priced("req_2", { startedAt: midnight + dayMs }),
        priced("req_3", { keyId: "key_b" }),
        priced("req_4", { target: "other/target" }),
        // What it has cost is not what its tokens cost at some price that is known.
        priced("req_5", { costNano: 77, priceVersion: 1 }),
        priced("req_6", { startedAt: midnight + 2 * dayMs }),
      ];
      await ledger.store.insert(calls);
      const price = { input: 1_000, output: 2_000 };
      const listed = { price, source: "test", confidence: "configured" } as const;
      const targets = { "bedrock-us/provider.model": listed };
      const table = { version: 7, validFrom: 0, targets };
      const request = {
        run: "rpr_1",
        at: midnight,
        since: midnight,
        until: midnight + 2 * dayMs,
        table,
        tables: new Map([[7, table]]),
        closedPeriods: false,
        isDryRun: false,
        limit: 2,
      };
      const reprice = async (more: object): Promise<number[]> => {
        const counts = [0, 0, 0, 0];
        let after: RepriceEnd | undefined;
        do {
          const part = await ledger.costs.reprice({ ...request, ...more, after });
          const found = [part.calls, part.repriced, part.notPriced, part.notExplained];
          for (const [place, count] of found.entries()) {
            counts[place] = (counts[place] ?? 0) + count;
          }
          after = part.end;
        } while (after !== undefined);
        return counts;
      };
      expect(await reprice({ isDryRun: true })).toEqual([5, 3, 1, 1]);
      const unpriced = (): Promise<number | undefined> =>
        ledger.reports
          .totals({ filter: allTime, by: [], limit: 1 })
          .then(([total]) => total?.unpricedCalls);
      expect(await unpriced()).toBe(5);
      expect(await reprice({})).toEqual([5, 3, 1, 1]);
      expect(await unpriced()).toBe(2);
      // 10 tokens at 1 nano-USD, and 20 at 2.
      for (const step of ["hour", "day"] as const) {
        const filter = { since: midnight, until: midnight + 3 * dayMs };
        const points = await ledger.reports.series({ filter, by: [], limit: 1, step });
        expect(points.map(({ costNano }) => costNano)).toEqual([177n, 50n, undefined]);
      }
      expect(await ledger.reports.call("req_1")).toEqual({ ...priced("req_1"), repricedNano: 50 });
      expect(await reprice({ run: "rpr_2" })).toEqual([5, 0, 1, 1]);
      const dearer = { ...table, version: 8, targets: { ...targets } };
      dearer.targets["bedrock-us/provider.model"] = {
        ...listed,
        price: { ...price, output: 3_000 },
      };
      expect(await reprice({ run: "rpr_3", table: dearer })).toEqual([5, 3, 1, 1]);
      expect((await ledger.reports.call("req_3"))?.repricedNano).toBe(70);
      expect(await removeAll(() => ledger.store.erase("acct_a", 100))).not.toEqual([]);
    });

    test("sums of costs are exact beyond the integers of a number", async () => {
      const costNano = 9_000_000_000_000_001;
      const calls = ["req_1", "req_2", "req_3"].map((id, index) =>
        recordOf(id, { costNano, startedAt: midnight + index * dayMs, keyId: `key_${index % 2}` }),
      );
      const unpriced = recordOf("req_4", { keyId: "key_9" });
      await ledger.store.insert([...calls, unpriced]);
      const totals = await ledger.reports.totals({ filter: allTime, by: [], limit: 1 });
      expect(totals[0]).toMatchObject({ costNano: 27_000_000_000_000_003n, unpricedCalls: 1 });
      const byKey = await ledger.reports.totals({ filter: allTime, by: ["key"], limit: 9 });
      expect(byKey.map(({ group, costNano: sum }) => [group.key, sum])).toEqual([
        ["key_0", 18_000_000_000_000_002n],
        ["key_1", 9_000_000_000_000_001n],
        ["key_9", undefined],
      ]);
      const one = { filter: allTime, by: ["key"], limit: 1, step: "day", rank: "cost" } as const;
      const points = await ledger.reports.series(one);
      expect(new Set(points.map(({ group }) => group.key))).toEqual(new Set(["key_0"]));
    });

    test("how a call found its target comes back with it, bounded", async () => {
      const attempt = {
        target: "east/model",
        model: "alpha-sonnet-4",
        startMs: 0.5,
        durationMs: 2_000,
        outcome: "connection-lost",
        mayBeBilled: true,
      } as const;
      const candidate = { target: "east/model", model: "alpha-sonnet-4", why: "priority 1" };
      const routing = {
        candidates: [candidate, { ...candidate, target: "west/model" }],
        attempts: [attempt, { ...attempt, outcome: "answered", mayBeBilled: false } as const],
      };
      const record = recordOf("req_1", { routing, mayBeBilledTwice: true, attempts: 2 });
      const endless = {
        candidates: Array.from({ length: 200 }, () => candidate),
        attempts: Array.from({ length: 200 }, () => attempt),
      };
      await ledger.store.insert([record, recordOf("req_2", { routing: endless })]);
      expect(await ledger.reports.call("req_1")).toEqual(record);
      const kept = (await ledger.reports.call("req_2"))?.routing;
      expect([kept?.candidates.length, kept?.attempts.length]).toEqual([64, 10]);
    });

    test("a record that is inserted again is left as it is and counted nowhere again", async () => {
      await ledger.store.insert([recordOf("req_1")]);
      await ledger.store.insert([recordOf("req_1", { outputTokens: 999 }), recordOf("req_2")]);
      await ledger.store.insert([recordOf("req_3"), recordOf("req_3", { outputTokens: 999 })]);
      expect((await ledger.reports.call("req_1"))?.outputTokens).toBe(20);
      const totals = await ledger.reports.totals({ filter: allTime, by: [], limit: 1 });
      expect(totals).toMatchObject([{ calls: 3, outputTokens: 60, inputTokens: 30 }]);
    });

    test("batches that overlap, in any order, count every call once", async () => {
      const records = randomRecords(randomOf(11), 300, 2);
      await ledger.store.insert(records.slice(100, 220));
      await ledger.store.insert(records.slice(200, 300));
      await ledger.store.insert(records.slice(0, 150));
      await ledger.store.insert(records);
      expect(await countCalls()).toBe(300);
      const steps = (["minute", "hour", "day"] as const).map(async (step) => {
        const points = await ledger.reports.series({ filter: allTime, by: [], limit: 1, step });
        return points.reduce((calls, point) => calls + point.calls, 0);
      });
      expect(await Promise.all(steps)).toEqual([300, 300, 300]);
    });

    test("an empty batch is no problem", async () => {
      await ledger.store.insert([]);
      expect(await countCalls()).toBe(0);
    });

    test("calls whose texts are no well-formed Unicode, or have NUL, are stored and counted", async () => {
      const names = { model: "a\0b", target: "half \ud800", application: "half \udc00\0" };
      await ledger.store.insert([
        recordOf("req_1", names),
        recordOf("req\0_2", { environment: "\0" }),
      ]);
      expect((await ledger.reports.calls(allTime, { limit: 10 })).items).toHaveLength(2);
      expect(await countCalls()).toBe(2);
    });

    test("one row that can never be stored refuses its batch, of which nothing is counted", async () => {
      const bad = [
        recordOf("req_2", { durationMs: Number.NaN }),
        recordOf("req_2", { inputTokens: 1.5 }),
        { ...recordOf("req_2"), keyId: undefined as unknown as string },
        { ...recordOf("req_2"), model: {} as string },
      ];
      for (const record of bad) {
        const batch = [recordOf("req_1", { model: "never-seen-before" }), record];
        const failure = await ledger.store.insert(batch).catch((error: unknown) => error);
        expect(failure).toBeInstanceOf(RefusedRows);
      }
      expect(await listIds(ledger.reports)).toEqual([]);
      expect(await countCalls()).toBe(0);
      await ledger.store.insert([recordOf("req_1", { model: "never-seen-before" })]);
      const totals = await ledger.reports.totals({ filter: allTime, by: ["model"], limit: 9 });
      expect(totals).toMatchObject([{ group: { model: "never-seen-before" }, calls: 1 }]);
    });

    test("calls that are too old are removed oldest first, in batches, and their sums stay", async () => {
      const times = [3, 1, 2, 5, 4];
      await ledger.store.insert(times.map((time) => recordOf(`req_${time}`, { startedAt: time })));
      expect(await ledger.store.prune({ ...keepAll, calls: 4 }, 2)).toBe(2);
      expect(await listIds(ledger.reports)).toEqual(["req_5", "req_4", "req_3"]);
      expect(await ledger.store.prune({ ...keepAll, calls: 4 }, 2)).toBe(1);
      expect(await ledger.store.prune({ ...keepAll, calls: 4 }, 2)).toBe(0);
      expect(await listIds(ledger.reports)).toEqual(["req_5", "req_4"]);
      expect(await countCalls()).toBe(5);
    });

    test("sums of hours have their own time, and days stand in for removed ones", async () => {
      const records = randomRecords(randomOf(5), 400, 3);
      await ledger.store.insert(records);
      const hours = await countSteps("hour");
      const limits = { ...keepAll, hours: midnight + dayMs + 90_000 };
      const removed = await removeAll(() => ledger.store.prune(limits, 50));
      expect(Math.max(...removed)).toBeLessThanOrEqual(50);
      expect(await countSteps("hour")).toBeLessThan(hours);
      expect(await countSteps("day")).toBe(3);
      expect(await countCalls()).toBe(400);
      // Of the first day there is only the whole; of the rest every minute.
      const filter = { since: midnight + 5 * 3_600_000, until: midnight + dayMs + 3 * 60_000 };
      const expected = records.filter(({ startedAt }) => startedAt < filter.until).length;
      const [total] = await ledger.reports.totals({ filter, by: [], limit: 1 });
      expect(total?.calls).toBe(expected);
    });

    test("sums by the day go when nothing else of the day is kept", async () => {
      await ledger.store.insert(randomRecords(randomOf(6), 200, 2));
      const limits = { calls: midnight + dayMs, hours: midnight + dayMs };
      await removeAll(() => ledger.store.prune({ ...limits, days: midnight + dayMs }, 30));
      expect(await countSteps("day")).toBe(1);
      expect(await countCalls()).toBe((await listIds(ledger.reports)).length);
    });

    test("an account is erased in batches, with its sums, and the others keep theirs", async () => {
      const records = randomRecords(randomOf(7), 400, 3);
      await ledger.store.insert(records);
      const others = records.filter(({ accountId }) => accountId !== "acct_1");
      const removed = await removeAll(() => ledger.store.erase("acct_1", 40));
      expect(Math.max(...removed)).toBeLessThanOrEqual(40);
      expect(await countCalls()).toBe(others.length);
      expect((await listIds(ledger.reports)).toSorted()).toEqual(
        others.map(({ id }) => id).toSorted(),
      );
      for (const step of ["minute", "hour", "day"] as const) {
        for (const by of ["account", "model", "key", "status"] as const) {
          const filter = { since: midnight, until: midnight + 3 * dayMs };
          const points = await ledger.reports.series({
            filter,
            by: ["account", by],
            limit: 99,
            step,
          });
          expect(points.filter(({ group }) => group.account === "acct_1")).toEqual([]);
          expect(points.reduce((calls, point) => calls + point.calls, 0)).toBe(others.length);
        }
      }
    });

    test("end users are erased in all calls of their account so far, stored or not, and sums stay", async () => {
      const of = (id: string, values: Partial<UsageRecord>) =>
        recordOf(id, { startedAt: midnight, endUser: "eu_jane", ...values });
      const records = [
        of("req_1", {}),
        of("req_2", { startedAt: midnight + dayMs }),
        of("req_3", { endUser: "eu_john" }),
        of("req_4", { accountId: "acct_b" }),
        of("req_5", { endUser: undefined }),
      ];
      await ledger.store.insert(records);
      const endUsers = ["eu_jane", "jane", "with \0 and \ud800"];
      const erased = { accountId: "acct_a", endUsers, before: midnight + 2 * dayMs };
      expect(await ledger.store.eraseEndUsers(erased)).toBe(2);
      // Late, and after it.
      await ledger.store.insert([
        of("req_6", { startedAt: midnight + 1 }),
        of("req_7", { startedAt: erased.before }),
        of("req_8", { accountId: "acct_b" }),
      ]);
      expect(await ledger.store.eraseEndUsers(erased)).toBe(0);
      const { items } = await ledger.reports.calls(allTime, { limit: 10 });
      const byId = Object.fromEntries(items.map(({ id, endUser }) => [id, endUser]));
      expect(byId).toEqual({
        req_1: undefined,
        req_2: undefined,
        req_3: "eu_john",
        req_4: "eu_jane",
        req_5: undefined,
        req_6: undefined,
        req_7: "eu_jane",
        req_8: "eu_jane",
      });
      expect(await countCalls()).toBe(8);
    });

    test("calls are told apart by end user and tag, the largest first, and what is left", async () => {
      const names = Array.from({ length: 30 }, (_none, index) => `eu_${index}`);
      const calls = names.flatMap((endUser, index) =>
        Array.from({ length: index + 1 }, (_none, call) =>
          recordOf(`req_${index}_${call}`, {
            startedAt: midnight + index * 60_000,
            endUser,
            tags: { team: index % 2 === 0 ? "even" : 'o"d\\d', other: "x" },
          }),
        ),
      );
      await ledger.store.insert([...calls, recordOf("req_none", { startedAt: midnight })]);
      const all = { since: midnight, until: midnight + dayMs };
      const top = await ledger.reports.totals({
        filter: all,
        by: ["end_user"],
        limit: 2,
        hasRest: true,
      });
      expect(top.map(({ group, calls: count }) => [group["end_user"], count])).toEqual([
        [undefined, calls.length + 1 - 59],
        ["eu_29", 30],
        ["eu_28", 29],
      ]);
      const filter = { ...all, tag: ["team", 'o"d\\d'] as const };
      const [ofTag] = await ledger.reports.totals({
        filter,
        by: ["tag:team", "tag:none"],
        limit: 5,
      });
      expect(ofTag).toMatchObject({
        group: { "tag:team": 'o"d\\d', "tag:none": null },
        calls: 240,
      });
      const series = await ledger.reports.series({
        filter: { ...all, endUsers: ["eu_3", "eu_4"] },
        by: ["end_user"],
        limit: 1,
        step: "hour",
        hasRest: true,
      });
      expect(series.map(({ group, calls: count }) => [group["end_user"], count])).toEqual([
        ["eu_4", 5],
        [undefined, 4],
      ]);
    });

    test("an account that was erased may call again, and only that is counted", async () => {
      await ledger.store.insert([recordOf("req_1"), recordOf("req_2")]);
      await removeAll(() => ledger.store.erase("acct_a", 1));
      await ledger.store.insert([recordOf("req_3")]);
      expect(await countCalls()).toBe(1);
      const totals = await ledger.reports.totals({ filter: allTime, by: ["account"], limit: 5 });
      expect(totals).toMatchObject([{ group: { account: "acct_a" }, calls: 1 }]);
    });
  });
}
