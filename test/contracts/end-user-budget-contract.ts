import { beforeEach, describe, expect, test } from "bun:test";
import { endUserDigests } from "../../src/domain/keys/pseudonyms.ts";
import { mostEndUsers } from "../../src/domain/money/budget.ts";
import type { StoredBudget } from "../../src/store/entities.ts";
import type { SqlStores } from "../../src/store/repositories/open-stores.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { testPeppers } from "../support/test-peppers.ts";
import {
  budgetOf,
  digestOf,
  now,
  type OpenGateways,
  reprice,
  storedSums,
} from "./budget-contract.ts";
import { insertKey } from "./control-fixtures.ts";
import { recordOf } from "./usage-fixtures.ts";

/** What budgets for each end user must do, whichever database has them. */
export function endUserBudgetContract(name: string, open: OpenGateways): void {
  describe(`budgets for each end user: ${name}`, () => {
    let stores: SqlStores;

    const insert = ({ control }: SqlStores, budget: StoredBudget) =>
      control.change(({ budgets }) => budgets.insert(budget));

    beforeEach(async () => {
      const [only] = await open(1, new ManualClock({ wallMs: now }));
      if (only === undefined) throw new Error("there is no gateway");
      stores = only;
      const of = { account: "acct_a", application: "app_a1", key: "key_a11" };
      await insertKey(stores.control, of);
    });

    test("of too many end users those who spent most are counted apart, and the rest together", async () => {
      const spender = (index: number, costNano: number, endUser = `eu_${index}`) =>
        recordOf(`req_${endUser}_${costNano}`, { startedAt: now, costNano, endUser });
      const many = Array.from({ length: mostEndUsers + 20 }, (_none, index) =>
        spender(index, index < 30 ? 1 : 2),
      );
      for (let first = 0; first < many.length; first += 1_000) {
        await stores.usage.insert(many.slice(first, first + 1_000));
      }
      await stores.usage.insert([recordOf("nobody", { startedAt: now, costNano: 5 })]);
      await insert(stores, budgetOf("each", { eachEndUser: true, alerts: [] }));
      const seeded = await storedSums(stores);
      expect(Object.keys(seeded)).toHaveLength(mostEndUsers + 1);
      expect(seeded["each/others 2026-11"]).toBe("20");
      // One that no process counted, of somebody who is known, and of somebody who is not.
      await stores.usage.insert([spender(40, 100), spender(0, 7, "eu_new")]);
      const after = await storedSums(stores);
      expect(Object.keys(after)).toHaveLength(mostEndUsers + 1);
      expect(after["each/others 2026-11"]).toBe("27");
      const fortieth = digestOf({ accountId: "acct_a", endUser: "eu_40" });
      expect(after[`each/${fortieth} 2026-11`]).toBe("102");
      const [state] = await stores.control.read(({ budgets }) =>
        budgets.states([budgetOf("each")], now),
      );
      expect(state?.spentNano).toBe(102);
    });

    test("who shares the limit of all others takes no place of somebody apart", async () => {
      await insert(stores, budgetOf("each", { eachEndUser: true, alerts: [] }));
      const of = (place: string) => ({ process: "p1", budgetIds: [`each/${place}`] });
      const places = Array.from({ length: mostEndUsers - 1 }, (_none, index) => `digest_${index}`);
      await stores.usage.insert(
        [...places, "others"].map((place) =>
          recordOf(place, { startedAt: now, costNano: 1, endUser: place, charge: of(place) }),
        ),
      );
      for (const endUser of ["eu_last", "eu_beyond"]) {
        await stores.usage.insert([recordOf(endUser, { startedAt: now, costNano: 5, endUser })]);
      }
      const sums = await storedSums(stores);
      const last = digestOf({ accountId: "acct_a", endUser: "eu_last" });
      expect(Object.keys(sums)).toHaveLength(mostEndUsers + 1);
      expect(sums[`each/${last} 2026-11`]).toBe("5");
      expect(sums["each/others 2026-11"]).toBe("6");
    });

    test("a new price of a call changes the spend where the call was counted", async () => {
      await insert(stores, budgetOf("each", { eachEndUser: true, alerts: [] }));
      const charge = { process: "p1", budgetIds: ["each/others"] };
      // Counted before the pepper was rotated.
      const mary = { accountId: "acct_a", endUser: "eu_mary" };
      const [older] = endUserDigests(testPeppers("older"))(mary);
      await stores.usage.insert([
        recordOf("jane", { startedAt: now, endUser: "eu_jane", charge }),
        recordOf("john", { startedAt: now, endUser: "eu_john" }),
        recordOf("mary", {
          startedAt: now,
          endUser: "eu_mary",
          charge: { process: "p1", budgetIds: [`each/${older}`] },
        }),
      ]);
      expect(await reprice(stores)).toMatchObject({ repriced: 3 });
      const john = digestOf({ accountId: "acct_a", endUser: "eu_john" });
      expect(await storedSums(stores)).toEqual({
        "each/others 2026-11": "30000",
        [`each/${john} 2026-11`]: "30000",
        [`each/${older} 2026-11`]: "30000",
      });
    });

    test("an erased end user has no spend, nor have calls of it that are stored later", async () => {
      const budget = budgetOf("each", { eachEndUser: true, alerts: [] });
      await insert(stores, budget);
      const of = { startedAt: now, costNano: 5, endUser: "eu_jane" };
      const digest = digestOf({ accountId: "acct_a", endUser: "eu_jane" });
      const charge = { process: "p1", budgetIds: [`each/${digest}`] };
      await stores.usage.insert([
        recordOf("one", { ...of, charge }),
        recordOf("two", { ...of, endUser: "eu_john" }),
      ]);
      expect(Object.keys(await storedSums(stores))).toHaveLength(2);
      const erased = { accountId: "acct_a", endUsers: ["eu_jane"], before: now + 1 };
      await stores.usage.eraseEndUsers(erased);
      await stores.usage.insert([recordOf("late", { ...of, charge })]);
      const john = digestOf({ accountId: "acct_a", endUser: "eu_john" });
      expect(await storedSums(stores)).toEqual({ [`each/${john} 2026-11`]: "5" });
      // It may come back, and a budget that goes takes all with it.
      await stores.usage.insert([recordOf("again", { ...of, startedAt: now + 2, charge })]);
      expect(Object.keys(await storedSums(stores))).toHaveLength(2);
      await stores.control.change(({ budgets }) => budgets.delete("each"));
      expect(await storedSums(stores)).toEqual({});
    });
  });
}
