import { describe, expect, test } from "bun:test";
import { amountsOf, BudgetGateway, hello, nanoOf } from "../support/budget-gateway.ts";
import { until } from "../support/until.ts";
import { describeWithValkey, valkeyOfTests } from "../support/valkey-server.ts";

const ofUser = (user: string | undefined) => ({ ...hello, user });
const forEach = (calls: number) => ({
  each_end_user: true,
  limit_usd: (calls * 0.04).toFixed(2),
  period: "day",
});

/** How many of so many calls of a user, one after the other, are served. */
async function served(budgets: BudgetGateway, user: string | undefined, count: number) {
  let all = 0;
  for (let index = 0; index < count; index += 1) all += await budgets.fitting(1, ofUser(user));
  return all;
}

describe("a budget for each end user", () => {
  test("lets each spend the same, and says whose it is without the name", async () => {
    await using budgets = await BudgetGateway.start();
    const { application_id } = await budgets.key();
    const { id } = await budgets.create({ application_id, ...forEach(3) });
    await budgets.everyProcessDecides();
    expect(await budgets.fitting(20, ofUser("jane"))).toBe(3);
    expect(await budgets.fitting(3, ofUser("john"))).toBe(3);
    // Who names nobody is not under it.
    expect(await budgets.fitting(10, ofUser(undefined))).toBe(10);
    const most = await served(budgets, "jane", 10);
    expect(most).toBeLessThan(10);
    const refused = await budgets.call(ofUser("jane"));
    expect(refused.status).toBe(429);
    expect(refused.text).toContain("his end user's daily budget under application ");
    expect(refused.text).not.toContain("jane");
    const { limit, spent } = amountsOf(refused.text);
    expect(limit).toBe(120_000_000);
    const rows = await budgets.rows();
    const cost = new Map<string | undefined, number>();
    for (const { endUser, costNano = 0 } of rows) {
      cost.set(endUser, (cost.get(endUser) ?? 0) + costNano);
    }
    cost.delete(undefined);
    expect([...cost.values()]).toContain(spent);
    // The state is of who spent most.
    await until(async () => (await budgets.spent(id)) === Math.max(...cost.values()));
    const request = refused.headers.get("x-request-id") ?? "";
    const explained = JSON.stringify(await budgets.json("GET", `/explain/${request}`));
    expect(explained).toContain(`can raise budget ${id}.`);
    expect(explained).toContain('"each_end_user":true');
    const use = await (await budgets.gateway.get("/v1/usage")).json();
    expect(use).toMatchObject({ budgets: [{ id, each_end_user: true, spent_usd: null }] });
  });

  test("counts what each has spent before it was set", async () => {
    await using budgets = await BudgetGateway.start();
    const { account_id } = await budgets.key();
    await served(budgets, "jane", 8);
    await served(budgets, undefined, 3);
    const spent = (await budgets.rows()).filter(({ endUser }) => endUser !== undefined);
    const nano = spent.reduce((sum, { costNano = 0 }) => sum + costNano, 0);
    const budget = await budgets.create({ account_id, ...forEach(1), limit_usd: "0.050000000" });
    expect(nanoOf(budget.state.spent_usd)).toBe(nano);
    await budgets.everyProcessDecides();
    expect((await budgets.call(ofUser("jane"))).text).toContain(
      "his end user's daily budget under the account ",
    );
    expect((await budgets.call(ofUser("john"))).status).toBe(200);
  });

  test("no name that a caller makes up breaks it", async () => {
    await using budgets = await BudgetGateway.start();
    const { id: key_id } = await budgets.key();
    const { id } = await budgets.create({ key_id, ...forEach(1) });
    await budgets.everyProcessDecides();
    const names = [
      "j",
      "=1+1",
      "others",
      "/",
      `${id}/others`,
      "__proto__",
      "' or 1=1 --",
      "日本",
      "a b",
    ];
    const all = await Promise.all(names.map((name) => budgets.fitting(5, ofUser(name))));
    expect(all).toEqual(names.map(() => 1));
    // No name is stored, so it is a call of nobody.
    expect(await budgets.fitting(5, ofUser("\u202ejane"))).toBe(5);
    expect((await budgets.call(ofUser("x".repeat(100_000)))).status).toBe(400);
    const flood = Array.from({ length: 200 }, (_none, index) => ofUser(`made up ${index}`));
    const statuses = await Promise.all(flood.map((body) => budgets.call(body)));
    expect(new Set(statuses.map(({ status }) => status))).toEqual(new Set([200]));
    expect((await budgets.rows()).length).toBeGreaterThan(200);
    const keys = JSON.stringify(await budgets.budget(id));
    for (const name of names) if (name.length > 3) expect(keys).not.toContain(name);
  }, 180_000);
});

describeWithValkey(() => {
  const valkey = valkeyOfTests();

  test("two processes let an end user spend its budget together, and no more", async () => {
    const limits = `{ store: "${valkey.server.url}", timeout: 5s }`;
    await using budgets = await BudgetGateway.start({ processes: 2, sections: { limits } });
    const { account_id } = await budgets.key();
    await budgets.create({ account_id, ...forEach(5) });
    // Each process decides about end users that nobody has seen.
    let seen = 0;
    const asNew = () => budgets.call({ ...ofUser(`new ${(seen += 1)}`), max_tokens: 1 });
    await until(async () => {
      const all = await Promise.all(Array.from({ length: 9 }, asNew));
      return all.every(({ status }) => status !== 503);
    });
    const fitted = await Promise.all(
      ["jane", "john", "mary"].map((user) => budgets.fitting(30, ofUser(user))),
    );
    expect(Math.max(...fitted)).toBeLessThanOrEqual(5);
    expect(Math.min(...fitted)).toBeGreaterThan(0);
    const keys = String(await valkey.server.command("KEYS", "*"));
    expect(keys).toContain(":budget:");
    for (const text of ["jane", "eu_"]) expect(keys).not.toContain(text);
  }, 180_000);
});
