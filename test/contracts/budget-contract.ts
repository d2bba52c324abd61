import { beforeEach, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { scopeIdOf } from "../../src/domain/money/budget.ts";
import { Calendar } from "../../src/domain/money/calendar.ts";
import type { UsageRecord } from "../../src/domain/usage/usage.ts";
import type { StoredBudget } from "../../src/store/entities.ts";
import { endUserDigests } from "../../src/domain/keys/pseudonyms.ts";
import type { BudgetAlert } from "../../src/store/store.ts";
import type { SqlStores } from "../../src/store/repositories/open-stores.ts";
import { runsOf } from "../support/requirement.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { insertKey } from "./control-fixtures.ts";
import { recordOf } from "./usage-fixtures.ts";
import { testPeppers } from "../support/test-peppers.ts";

/** Connections of several gateways to one new database. */
export type OpenGateways = (count: number, clock: ManualClock) => Promise<readonly SqlStores[]>;

const hourMs = 3_600_000;
const usd = 1_000_000_000;
export const now = Date.UTC(2026, 10, 28, 12);
const calendar = new Calendar();

export function budgetOf(id: string, values: Partial<StoredBudget> = {}): StoredBudget {
  return {
    id,
    accountId: "acct_a",
    applicationId: undefined,
    keyId: undefined,
    model: undefined,
    eachEndUser: false,
    period: "month",
    timeZone: "UTC",
    mode: "refuse",
    limitNano: 5 * usd,
    setBy: "operator",
    alerts: [50, 80, 100],
    note: "",
    createdAt: now,
    revision: 1,
    ...values,
  };
}

export function digestOf(row: Pick<UsageRecord, "accountId" | "endUser">): string {
  return endUserDigests(testPeppers())(row)[0] ?? "";
}

/** What stored calls cost, by `budget period`, as rows and budgets say. */
function sumsOf(
  budgets: Iterable<StoredBudget>,
  rows: Iterable<UsageRecord>,
): Record<string, string> {
  const sums = new Map<string, bigint>();
  const all = [...rows];
  for (const budget of budgets) {
    const since = calendar.periodAt(budget, budget.createdAt).startsAt;
    for (const row of all) {
      if (row.startedAt < since || row.accountId !== budget.accountId) continue;
      const { applicationId = row.applicationId, keyId = row.keyId, model = row.model } = budget;
      const isOfApplication = applicationId === row.applicationId;
      if (!isOfApplication || keyId !== row.keyId || model !== row.model) continue;
      if (budget.eachEndUser === true && row.endUser === undefined) continue;
      const endUser = budget.eachEndUser === true ? digestOf(row) : undefined;
      const name = `${scopeIdOf({ budget, endUser })} ${calendar.periodAt(budget, row.startedAt).id}`;
      sums.set(name, (sums.get(name) ?? 0n) + BigInt(row.costNano ?? 0));
    }
  }
  return namedSums(sums);
}

function namedSums(sums: ReadonlyMap<string, bigint>): Record<string, string> {
  const spent = [...sums].filter(([, sum]) => sum !== 0n);
  return Object.fromEntries(spent.map(([name, sum]) => [name, String(sum)]));
}

export async function storedSums({ spend }: SqlStores): Promise<Record<string, string>> {
  const sums = new Map<string, bigint>();
  for (const { budgetId, periodId, byProcess } of (await spend.since(0, 0)).spend) {
    const sum = Object.values(byProcess).reduce((total, nano) => total + BigInt(nano), 0n);
    sums.set(`${budgetId} ${periodId}`, sum);
  }
  return namedSums(sums);
}

export function reprice({ costs }: SqlStores): Promise<{ repriced: number }> {
  const price = { input: 1_000_000, cache_read: 1_000_000, output: 1_000_000 };
  const target = { price, source: "test", confidence: "configured" as const };
  const table = { version: 1, validFrom: 0, targets: { "bedrock-us/provider.model": target } };
  return costs.reprice({
    run: "rpr_1",
    at: now,
    since: 0,
    until: now + 1,
    closedPeriods: false,
    table,
    tables: new Map([[1, table]]),
    isDryRun: false,
    after: undefined,
    limit: 9,
  });
}

/** What budgets must do, whichever database has them. */
export function budgetContract(name: string, open: OpenGateways): void {
  describe(`budget contract: ${name}`, () => {
    let clock: ManualClock;
    let gateways: readonly SqlStores[];

    async function begin(count: number): Promise<SqlStores> {
      clock = new ManualClock({ wallMs: now });
      gateways = await open(count, clock);
      const [first] = gateways;
      if (first === undefined) throw new Error("there is no gateway");
      for (const account of ["a", "b"]) {
        for (const application of ["1", "2"]) {
          for (const key of ["1", "2"]) {
            await insertKey(first.control, {
              account: `acct_${account}`,
              application: `app_${account}${application}`,
              key: `key_${account}${application}${key}`,
            });
          }
        }
      }
      return first;
    }

    const insert = ({ control }: SqlStores, budget: StoredBudget) =>
      control.change(({ budgets }) => budgets.insert(budget));

    describe("one gateway", () => {
      let stores: SqlStores;
      beforeEach(async () => {
        stores = await begin(1);
      });

      test("every field of a budget comes back as it was given, also after a change", async () => {
        const whole = budgetOf("whole", {
          applicationId: "app_a1",
          keyId: "key_a11",
          model: "alpha-sonnet-4",
          period: "week",
          timeZone: "Asia/Kathmandu",
          mode: "warn",
          limitNano: 9_000_000 * usd,
          setBy: "account_holder",
          alerts: [1, 99, 250],
          note: "for the pilot",
        });
        await insert(stores, whole);
        await insert(stores, budgetOf("plain"));
        const read = () => stores.control.read(({ budgets }) => budgets.get("whole"));
        expect(await read()).toEqual(whole);
        const changed = { mode: "refuse", limitNano: 1, alerts: [], note: "" } as const;
        await stores.control.change(({ budgets }) => budgets.update({ ...whole, ...changed }));
        expect(await read()).toEqual({ ...whole, ...changed, revision: 2 });
      });

      test("a budget on a key with history counts its period, and no earlier one", async () => {
        const month = Date.UTC(2026, 10, 1);
        await stores.usage.insert([
          recordOf("old", { keyId: "key_a11", startedAt: month - 1, costNano: 1_000 }),
          recordOf("first", { keyId: "key_a11", startedAt: month, costNano: 20 }),
          recordOf("other", { keyId: "key_a12", startedAt: month, costNano: 300 }),
        ]);
        await insert(stores, budgetOf("monthly", { keyId: "key_a11" }));
        await insert(stores, budgetOf("total", { keyId: "key_a11", period: "total" }));
        // Calls of before that are stored late.
        await stores.usage.insert([
          recordOf("late", { keyId: "key_a11", startedAt: month - 2, costNano: 4_000 }),
          recordOf("now", { keyId: "key_a11", startedAt: now, costNano: 5 }),
        ]);
        expect(await storedSums(stores)).toEqual({ "monthly 2026-11": "25", "total total": "5" });
      });

      test("a period that begins has nothing of the one before", async () => {
        await insert(stores, budgetOf("daily", { period: "day" }));
        const end = Date.UTC(2026, 10, 29);
        await stores.usage.insert([
          recordOf("one", { startedAt: end - 1, costNano: 7 }),
          recordOf("two", { startedAt: end, costNano: 9 }),
        ]);
        const daily = budgetOf("daily", { period: "day" });
        const spentAt = (at: number) =>
          stores.control.read(async ({ budgets }) => (await budgets.states([daily], at))[0]);
        expect(await spentAt(end - 1)).toMatchObject({ spentNano: 7 });
        expect(await spentAt(end)).toMatchObject({ spentNano: 9 });
        expect(await spentAt(end + 24 * hourMs)).toMatchObject({ spentNano: 0, unpricedCalls: 0 });
      });

      test("a call without a price is counted and costs nothing", async () => {
        await stores.usage.insert([recordOf("before", { startedAt: now })]);
        await insert(stores, budgetOf("monthly"));
        await stores.usage.insert([
          recordOf("unpriced", { startedAt: now }),
          recordOf("free", { startedAt: now, costNano: 0 }),
          recordOf("priced", { startedAt: now, costNano: 11 }),
        ]);
        const [state] = await stores.control.read(({ budgets }) =>
          budgets.states([budgetOf("monthly")], now),
        );
        expect(state).toMatchObject({ spentNano: 11, unpricedCalls: 2 });
      });

      test("calls are charged to the process that counts them, and others to none", async () => {
        await insert(stores, budgetOf("monthly"));
        const charge = { process: "p1", budgetIds: ["monthly", "deleted"] };
        await stores.usage.insert([
          recordOf("one", { startedAt: now, costNano: 5, charge }),
          recordOf("two", { startedAt: now, costNano: 6, charge: { ...charge, budgetIds: [] } }),
          recordOf("three", { startedAt: now, costNano: 7 }),
        ]);
        const told = await stores.spend.since(0, now);
        expect(told).toMatchObject({ isWhole: true });
        expect(told.spend).toEqual([
          { budgetId: "monthly", periodId: "2026-11", byProcess: { "": 13, p1: 5 } },
        ]);
        // Nothing has changed since then.
        expect(await stores.spend.since(told.epoch, now)).toMatchObject({ spend: [] });
        await stores.usage.insert([recordOf("four", { startedAt: now, costNano: 1, charge })]);
        const later = await stores.spend.since(told.epoch, now);
        expect(later.isWhole).toBe(false);
        expect(later.spend[0]?.byProcess).toEqual({ "": 13, p1: 6 });
        // A database from before this epoch was restored.
        expect((await stores.spend.since(later.epoch + 9, now)).isWhole).toBe(true);
      });

      test("budgets that refuse come with the keys that they are for, and each change of them", async () => {
        let { epoch } = await stores.keys.loadKeys(0, 100);
        const told = async (change: Promise<unknown>) => {
          await change;
          const page = await stores.keys.loadKeys(epoch, 100);
          ({ epoch } = page);
          return page.changes
            .map(
              ({ keyId, live }) =>
                `${keyId}: ${live?.budgets?.map(({ id }) => id).join() ?? "none"}`,
            )
            .toSorted();
        };
        const change = (work: (budgets: StoreBudgets) => Promise<unknown>) =>
          told(stores.control.change(({ budgets }) => work(budgets)));
        expect(await told(insert(stores, budgetOf("warns", { mode: "warn" })))).toEqual([]);
        const ofKey = budgetOf("ofKey", { applicationId: "app_a1", keyId: "key_a11" });
        expect(await told(insert(stores, ofKey))).toEqual(["key_a11: ofKey"]);
        const ofApplication = budgetOf("ofApp", { applicationId: "app_a1", createdAt: now + 1 });
        expect(await told(insert(stores, ofApplication))).toEqual([
          "key_a11: ofKey,ofApp",
          "key_a12: ofApp",
        ]);
        const ofAccount = budgetOf("ofAccount", { createdAt: now + 2 });
        expect(await told(insert(stores, ofAccount))).toEqual([
          "key_a11: ofKey,ofApp,ofAccount",
          "key_a12: ofApp,ofAccount",
          "key_a21: ofAccount",
          "key_a22: ofAccount",
        ]);
        const raised = { ...ofKey, limitNano: 9 };
        expect(await change((budgets) => budgets.update(raised))).toHaveLength(1);
        const noted = { ...raised, note: "only a comment", revision: 2 };
        expect(await change((budgets) => budgets.update(noted))).toEqual([]);
        const softened = { ...noted, mode: "warn" as const, revision: 3 };
        expect(await change((budgets) => budgets.update(softened))).toEqual([
          "key_a11: ofApp,ofAccount",
        ]);
        expect(await change((budgets) => budgets.delete("ofAccount"))).toHaveLength(4);
        expect(await change((budgets) => budgets.delete("ofApp"))).toEqual([
          "key_a11: none",
          "key_a12: none",
        ]);
      });

      test("the budget in the feed has every field that a process decides by", async () => {
        const {
          note: _note,
          alerts: _alerts,
          revision: _revision,
          ...budget
        } = budgetOf("ofKey", {
          applicationId: "app_a1",
          keyId: "key_a11",
          model: "beta-3-70b",
          timeZone: "Asia/Kathmandu",
          period: "week",
          setBy: "account_holder",
        });
        await insert(stores, budgetOf("ofKey", budget));
        const { changes } = await stores.keys.loadKeys(0, 100);
        expect(changes.find(({ keyId }) => keyId === "key_a11")?.live?.budgets).toEqual([budget]);
      });

      test("budgets go with their application and their key", async () => {
        await insert(stores, budgetOf("ofKey", { applicationId: "app_a1", keyId: "key_a11" }));
        await insert(stores, budgetOf("daily", { period: "day" }));
        const owner = { applicationId: "app_a1", keyId: "key_a11", costNano: 5 };
        await stores.usage.insert([recordOf("req_1", { ...owner, startedAt: now })]);
        await stores.control.change(({ keys }) => keys.delete("key_a11"));
        const { items } = await stores.control.read(({ budgets }) =>
          budgets.list({}, { limit: 10 }),
        );
        expect(items.map(({ id }) => id)).toEqual(["daily"]);
        const prune = async (keys: number) => {
          await stores.control.prune({ audit: 0, keys, access: 0, replies: 0 }, 100);
          return storedSums(stores);
        };
        // What is left of it goes with retention, and so do periods that ended long ago.
        expect(await prune(now)).toEqual({ "daily 2026-11-28": "5" });
        expect(await prune(now + 24 * hourMs)).toEqual({});
      });
    });

    describe("alerts", () => {
      let stores: SqlStores;
      beforeEach(async () => {
        stores = await begin(2);
        await stores.storedCalls.next(turn);
        await insert(stores, budgetOf("monthly", { limitNano: 100, mode: "warn" }));
      });
      const turn = { holder: "one", nowMs: 1_000, untilMs: 2_000, limit: 50 };
      const at = { startedAt: now };
      const alertOf = ({ id, thresholds, spentNano }: BudgetAlert) =>
        `${id.split(".")[1]}: ${thresholds.join()} at ${spentNano}`;

      /** What the next delivery has, and confirms. */
      async function delivered(): Promise<readonly string[]> {
        const batch = await stores.storedCalls.next(turn);
        if (batch === undefined) return [];
        await stores.storedCalls.confirm("one", batch);
        return batch.alerts.map(alertOf);
      }

      const raise = async (limitNano: number) =>
        stores.control.change(async ({ budgets }) => {
          const budget = await budgets.get("monthly");
          if (budget !== undefined) await budgets.update({ ...budget, limitNano });
        });

      test("each threshold is told once, those of one moment together, and none early", async () => {
        const told: string[] = [];
        for (const [id, costNano] of [30, 19, 1, 29, 1, 19, 1, 50].entries()) {
          await stores.usage.insert([recordOf(`req_${id}`, { ...at, costNano })]);
          told.push(...(await delivered()));
        }
        expect(told).toEqual(["2026-11: 50 at 50", "2026-11: 80 at 80", "2026-11: 100 at 100"]);
        await insert(stores, budgetOf("other", { limitNano: 100 }));
        await stores.usage.insert([recordOf("last", { ...at, costNano: 5 })]);
        expect(await delivered()).toEqual(["2026-11: 50,80,100 at 155"]);
      });

      test("0.4 of 15 USD is not 99 percent, and a nano less than the limit is not all of it", async () => {
        const limitNano = 9_000_000 * usd;
        await insert(stores, budgetOf("large", { limitNano, alerts: [99, 100] }));
        await insert(stores, budgetOf("small", { limitNano: 15 * usd, alerts: [99] }));
        await raise(limitNano);
        await stores.usage.insert([recordOf("req_1", { ...at, costNano: 400_000_000 })]);
        expect(await delivered()).toEqual([]);
        const costNano = limitNano - 400_000_000 - 1;
        await stores.usage.insert([recordOf("req_2", { ...at, costNano })]);
        const told = await delivered();
        expect(told.filter((text) => text.includes("100"))).toEqual([]);
        await stores.usage.insert([recordOf("req_3", { ...at, costNano: 1 })]);
        expect(await delivered()).toHaveLength(2);
      });

      test("a raise makes those possible again that it leaves behind, and so does a new period", async () => {
        await stores.usage.insert([recordOf("req_1", { ...at, costNano: 85 })]);
        expect(await delivered()).toEqual(["2026-11: 50,80 at 85"]);
        await raise(120);
        await stores.usage.insert([recordOf("req_2", { ...at, costNano: 1 })]);
        // 50 percent of the higher limit are still reached.
        expect(await delivered()).toEqual([]);
        await stores.usage.insert([recordOf("req_3", { ...at, costNano: 10 })]);
        expect(await delivered()).toEqual(["2026-11: 80 at 96"]);
        const startedAt = Date.UTC(2026, 11, 1);
        await stores.usage.insert([recordOf("req_4", { startedAt, costNano: 60 })]);
        expect(await delivered()).toEqual(["2026-12: 50 at 60"]);
      });

      test("what a raise has made possible again was told before, though nobody took it yet", async () => {
        await stores.usage.insert([recordOf("req_1", { ...at, costNano: 60 })]);
        await raise(200);
        await stores.usage.insert([recordOf("req_2", { ...at, costNano: 60 })]);
        expect(await delivered()).toEqual(["2026-11: 50 at 60", "2026-11: 50 at 120"]);
      });

      test("who has stored calls again, or got no answer, finds the same alerts", async () => {
        const rows = [recordOf("req_1", { ...at, costNano: 60 }), recordOf("req_2", at)];
        await stores.usage.insert(rows);
        const first = await stores.storedCalls.next(turn);
        await raise(110);
        for (const each of gateways) await each.usage.insert(rows);
        expect(first?.alerts.map(alertOf)).toEqual(["2026-11: 50 at 60"]);
        expect(await stores.storedCalls.next(turn)).toEqual(first);
        expect(await stores.storedCalls.alertsOf(["req_0", "req_1"])).toEqual([]);
        expect(await stores.storedCalls.alertsOf(["req_1", "req_2"])).toEqual(first?.alerts ?? []);
      });

      test("a budget that refuses is exhausted, once until it is raised, though it is not all spent", async () => {
        const refusedBy = { id: "monthly", limitNano: 100 };
        const refused = { ...at, costNano: 0, status: 429, refusedBy };
        await stores.usage.insert([recordOf("req_1", { ...at, costNano: 90 })]);
        expect(await delivered()).toEqual(["2026-11: 50,80 at 90"]);
        await stores.usage.insert([recordOf("req_2", refused)]);
        for (const each of gateways) await each.usage.insert([recordOf("req_3", refused)]);
        await stores.usage.insert([recordOf("req_4", { ...at, costNano: 10 })]);
        expect(await delivered()).toEqual(["2026-11: 100 at 90"]);
        await raise(130);
        // It was refused before the raise.
        await stores.usage.insert([recordOf("req_5", refused)]);
        expect(await delivered()).toEqual([]);
        const again = { ...refused, refusedBy: { id: "monthly", limitNano: 130 } };
        await stores.usage.insert([recordOf("req_6", again)]);
        expect(await delivered()).toEqual(["2026-11: 100 at 100"]);
      });

      test("a new limit that is reached already is told with the next call", async () => {
        await stores.usage.insert([recordOf("req_1", { ...at, costNano: 40 })]);
        await raise(45);
        const changed = budgetOf("monthly", { limitNano: 45, mode: "warn" });
        await stores.control.change(({ budgets }) => budgets.judge(changed, now));
        await stores.usage.insert([recordOf("req_2", { ...at, costNano: 0 })]);
        expect(await delivered()).toEqual(["2026-11: 50,80 at 40"]);
      });

      test("what a new price of stored calls reaches is told with the next call", async () => {
        await stores.usage.insert([recordOf("req_1", at)]);
        expect(await delivered()).toEqual([]);
        const { repriced } = await reprice(stores);
        expect(repriced).toBe(1);
        await stores.usage.insert([recordOf("req_2", { ...at, costNano: 0 })]);
        expect((await stores.storedCalls.alertsOf(["req_2"])).map(alertOf)).toEqual([
          "2026-11: 50,80,100 at 30000",
        ]);
        expect(await delivered()).toEqual(["2026-11: 50,80,100 at 30000"]);
        const state = (
          await stores.control.read(({ budgets }) => budgets.states([budgetOf("monthly")], now))
        )[0];
        expect(state).toMatchObject({ spentNano: 30_000, unpricedCalls: 0 });
      });

      test("two leaders that store at once tell each threshold once", async () => {
        const rows = Array.from({ length: 60 }, (_, index) =>
          recordOf(`req_${index}`, { ...at, costNano: 2 }),
        );
        await Promise.all(
          rows.map(async (row, index) => gateways[index % gateways.length]?.usage.insert([row])),
        );
        const batches = [await stores.storedCalls.next(turn)];
        if (batches[0] !== undefined) await stores.storedCalls.confirm("one", batches[0]);
        batches.push(await stores.storedCalls.next(turn));
        expect(batches.flatMap((batch) => batch?.alerts.map(alertOf) ?? [])).toEqual([
          "2026-11: 50 at 50",
          "2026-11: 80 at 80",
          "2026-11: 100 at 100",
        ]);
      });
    });

    test("what is spent is the sum of the rows, whatever happens at once", async () => {
      const rowOf = fc.record({
        key: fc.constantFrom("a11", "a12", "a21", "a22", "b11", "b21"),
        startedAt: fc.integer({ min: now - 40 * 24 * hourMs, max: now + 24 * hourMs }),
        model: fc.constantFrom("alpha-sonnet-4", "beta-3-70b"),
        costNano: fc.option(fc.integer({ min: 0, max: 9_000_000_000_000 }), { nil: undefined }),
        budgetIds: fc.subarray(["b0", "b1", "b2", "b3"]),
        endUser: fc.constantFrom(undefined, "eu_one", "eu_two"),
      });
      const budget = fc.record({
        of: fc.constantFrom("a", "a1", "a11", "b", "b2"),
        model: fc.option(fc.constant("beta-3-70b"), { nil: undefined }),
        period: fc.constantFrom("day", "week", "month", "total"),
        timeZone: fc.constantFrom("UTC", "Asia/Kathmandu", "America/New_York"),
        mode: fc.constantFrom("warn", "refuse"),
        eachEndUser: fc.boolean(),
      });
      const step = fc.oneof(
        { weight: 6, arbitrary: fc.record({ rows: fc.array(rowOf, { maxLength: 8 }) }) },
        { weight: 3, arbitrary: fc.record({ budget }) },
        { weight: 1, arbitrary: fc.record({ deleted: fc.nat(9) }) },
        { weight: 2, arbitrary: fc.record({ again: fc.nat(99) }) },
      );
      const steps = fc.array(fc.record({ step, by: fc.nat(1), waits: fc.boolean() }), {
        minLength: 5,
        maxLength: 40,
      });
      await fc.assert(
        fc.asyncProperty(steps, async (all) => {
          await begin(2);
          const batches: (readonly UsageRecord[])[] = [];
          const made: StoredBudget[] = [];
          const deleted = new Set<string>();
          let running: Promise<unknown>[] = [];
          for (const [index, { step: each, by, waits }] of all.entries()) {
            const stores = gateways[by % gateways.length];
            if (stores === undefined) throw new Error("there is no gateway");
            if ("rows" in each) {
              const batch = each.rows.map(({ key, budgetIds, ...row }, place) => {
                const accountId = `acct_${key.slice(0, 1)}`;
                const digest = digestOf({ accountId, endUser: row.endUser });
                const scopes = budgetIds.map((id) => {
                  const isForEach = made.find((of) => of.id === id)?.eachEndUser === true;
                  return isForEach ? `${id}/${digest}` : id;
                });
                return recordOf(`req_${index}_${place}`, {
                  ...row,
                  accountId,
                  applicationId: `app_${key.slice(0, 2)}`,
                  keyId: `key_${key}`,
                  charge: { process: `p${by}`, budgetIds: scopes },
                });
              });
              batches.push(batch);
              running.push(stores.usage.insert(batch));
            } else if ("budget" in each) {
              const { of, period, ...values } = each.budget;
              const next = budgetOf(`b${made.length}`, {
                ...values,
                period: values.eachEndUser && period === "total" ? "month" : period,
                accountId: `acct_${of.slice(0, 1)}`,
                ...(of.length > 1 && { applicationId: `app_${of.slice(0, 2)}` }),
                ...(of.length > 2 && { keyId: `key_${of}` }),
              });
              made.push(next);
              running.push(insert(stores, next));
            } else if ("deleted" in each) {
              const id = `b${each.deleted}`;
              await Promise.all(running);
              if (made.length > each.deleted) deleted.add(id);
              running.push(stores.control.change(({ budgets }) => budgets.delete(id)));
            } else if (batches.length > 0) {
              // A batch is stored again after a crash, perhaps by the other leader.
              running.push(stores.usage.insert(batches[each.again % batches.length] ?? []));
            }
            if (waits) running = [Promise.all(running)];
            if (waits) await running[0];
          }
          await Promise.all(running);
          const rows = new Map(batches.flat().map((row) => [row.id, row]));
          const live = made.filter(({ id }) => !deleted.has(id));
          const [first] = gateways;
          if (first === undefined) throw new Error("there is no gateway");
          expect(await storedSums(first)).toEqual(sumsOf(live, rows.values()));
        }),
        { numRuns: runsOf(60) },
      );
    }, 300_000);
  });
}

type StoreBudgets = Parameters<Parameters<SqlStores["control"]["change"]>[0]>[0]["budgets"];
