import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { recordOf } from "../../../test/contracts/usage-fixtures.ts";
import { AdminFixture, auditor, holderOf } from "../../../test/support/admin-fixture.ts";
import type { Principal } from "../../domain/principal.ts";
import type { Application } from "../../store/entities.ts";
import {
  accountSchema,
  budgetSchema,
  changedBudgetSchema,
  erasedSchema,
  listOf,
  removedSchema,
} from "../contract.ts";

const usd = 1_000_000_000;

let admin: AdminFixture;
let application: Application;
let holder: Principal;
beforeEach(async () => {
  admin = new AdminFixture();
  // The middle of a month in most zones.
  admin.clock.advance(Date.UTC(2026, 10, 16, 12) - admin.clock.now());
  application = await admin.application("first");
  holder = holderOf(application.accountId);
});
afterEach(() => admin[Symbol.asyncDispose]());

const create = (body: object, as?: Principal) =>
  admin.run(budgetSchema, "createBudget", { body, ...(as && { as }) });
const monthly = (more: object = {}) => ({
  account_id: application.accountId,
  limit_usd: "5",
  period: "month",
  ...more,
});
const refused = async (body: object, as?: Principal) => {
  const { status, code, param, message } = await admin.refusal("createBudget", {
    body,
    ...(as && { as }),
  });
  return [status, code, param, message];
};

function spend(id: string, costNano: number | undefined, more: object = {}) {
  const { accountId, id: applicationId } = application;
  const startedAt = admin.clock.now();
  const of = { accountId, applicationId, startedAt, ...(costNano !== undefined && { costNano }) };
  return admin.stores.usage.insert([recordOf(id, { ...of, ...more })]);
}

describe("budgets", () => {
  test("what is left unsaid has a default, and each field comes back as it was given", async () => {
    const plain = await create(monthly());
    expect(plain).toMatchObject({
      account_id: application.accountId,
      account: "first",
      application_id: null,
      key_id: null,
      model: null,
      each_end_user: false,
      period: "month",
      time_zone: "UTC",
      mode: "refuse",
      limit_usd: "5.000000000",
      alerts: [50, 80, 100],
      note: "",
      set_by: "operator",
      revision: 1,
    });
    const { key } = await admin.issue(application.id);
    const whole = {
      application_id: application.id,
      key_id: key.id,
      model: "alpha-sonnet-4",
      period: "week",
      time_zone: "Asia/Kathmandu",
      mode: "warn",
      limit_usd: "9000000.000000000",
      alerts: [120, 10],
      note: "pilot",
    };
    const budget = await create({ ...whole, account_id: application.accountId });
    const expected = { ...whole, alerts: [10, 120], application: "search", set_by: "operator" };
    expect(budget).toMatchObject(expected);
    const state = { ...budget.state, reserved_usd: "0.000000000" };
    const read = await admin.run(budgetSchema, "getBudget", { id: budget.id });
    expect(read).toEqual({ ...budget, state });
    // Of a key alone, the rest is known.
    const { limit_usd, period } = whole;
    expect(await create({ key_id: key.id, limit_usd, period })).toMatchObject({
      account_id: application.accountId,
      application_id: application.id,
    });
  });

  test("the account's time zone is the default of its later budgets alone", async () => {
    const before = await create(monthly());
    const body = { revision: 1, time_zone: "Europe/Berlin" };
    const account = await admin.run(accountSchema, "updateAccount", {
      id: application.accountId,
      body,
    });
    expect(account.time_zone).toBe("Europe/Berlin");
    expect(await create(monthly())).toMatchObject({
      time_zone: "Europe/Berlin",
      state: { starts_at: "2026-10-31T23:00:00.000Z", ends_at: "2026-11-30T23:00:00.000Z" },
    });
    expect((await admin.run(budgetSchema, "getBudget", { id: before.id })).time_zone).toBe("UTC");
    const wrong = { revision: 2, time_zone: "Berlin" };
    const refusal = await admin.refusal("updateAccount", { id: account.id, body: wrong });
    expect([refusal.status, refusal.param]).toEqual([400, "time_zone"]);
  });

  test("the state tells what is spent, how much is left, until when, and at this pace", async () => {
    await spend("before", usd);
    const { id, state } = await create(monthly());
    expect(state).toEqual({
      period_id: "2026-11",
      starts_at: "2026-11-01T00:00:00.000Z",
      ends_at: "2026-12-01T00:00:00.000Z",
      spent_usd: "1.000000000",
      reserved_usd: null,
      left_usd: "4.000000000",
      percent: 20,
      // A dollar in half of the month lasts for its end.
      runs_out_at: null,
      unpriced_calls: 0,
    });
    await spend("more", 3_999_999_999);
    await spend("unpriced", undefined);
    const read = async () => (await admin.run(budgetSchema, "getBudget", { id })).state;
    expect(await read()).toMatchObject({
      left_usd: "0.000000001",
      percent: 99,
      runs_out_at: "2026-11-16T12:00:00.000Z",
      unpriced_calls: 1,
    });
    await spend("over", 2 * usd);
    expect(await read()).toMatchObject({
      left_usd: "0.000000000",
      percent: 139,
      runs_out_at: null,
    });
    admin.clock.advance(15 * 86_400_000);
    expect(await read()).toMatchObject({
      period_id: "2026-12",
      spent_usd: "0.000000000",
      percent: 0,
    });
  });

  test("the pace of less than a day and 5 % of the period says nothing", async () => {
    const hour = 3_600_000;
    const paceOf = async (period: string, afterMs: number) => {
      const start = admin.clock.now();
      const { id } = await create(monthly({ period, limit_usd: "50" }));
      await spend(id, 10 * usd);
      admin.clock.advance(afterMs);
      const { state } = await admin.run(budgetSchema, "getBudget", { id });
      admin.clock.jumpWall(start - admin.clock.now());
      return state.runs_out_at;
    };
    expect(await paceOf("total", 23 * hour)).toBeNull();
    expect(await paceOf("total", 24 * hour)).not.toBeNull();
    // 0:00 of the next day.
    admin.clock.advance(12 * hour);
    expect(await paceOf("day", 1.1 * hour)).toBeNull();
    expect(await paceOf("day", 1.2 * hour)).not.toBeNull();
  });

  test("mistakes are refused with what to change", async () => {
    const zone =
      "Invalid value for 'time_zone': use an IANA name such as `Europe/Berlin` or `UTC`.";
    for (const time_zone of ["Europe/Berln", "+01:00", "", "europe/berlin"]) {
      const [status, , param, message] = await refused(monthly({ time_zone }));
      expect([status, param, message]).toEqual([400, "time_zone", zone]);
    }
    const limits = [
      "0",
      "-1",
      "1e3",
      "9000000.000000001",
      "5,00",
      "0.0000000001",
      "",
      "1.2.3",
      " 5",
    ];
    for (const limit_usd of limits) {
      const [status, , param, message] = await refused(monthly({ limit_usd }));
      expect([limit_usd, status, param]).toEqual([limit_usd, 400, "limit_usd"]);
      expect(message).toContain(
        'use USD above 0 and up to 9,000,000 as a text of digits, such as "5"',
      );
    }
    for (const [more, param] of [
      [{ limit_usd: 5 }, "limit_usd"],
      [{ period: "year" }, "period"],
      [{ mode: "block" }, "mode"],
      [{ alerts: [0] }, "alerts[0]"],
      [{ alerts: [50.5] }, "alerts[0]"],
      [{ model: "alpha-sonet-4" }, "model"],
      [{ model: "gamma-large", application_id: application.id }, "model"],
      [{ fiscal_year: 1 }, "fiscal_year"],
    ] as const) {
      const [status, , named] = await refused(monthly(more));
      expect([status, named]).toEqual([400, param]);
    }
    expect((await refused(monthly({ model: "alpha-sonet-4" })))[3]).toContain(
      "did you mean 'alpha-sonnet-4'?",
    );
    expect((await refused({ limit_usd: "5", period: "month" })).slice(0, 3)).toEqual([
      400,
      "missing_required_parameter",
      "account_id",
    ]);
    const other = await admin.application("second");
    const { key } = await admin.issue(other.id);
    expect((await refused(monthly({ application_id: other.id })))[2]).toBe("account_id");
    expect(
      (await refused({ ...monthly({ key_id: key.id, application_id: application.id }) }))[2],
    ).toBe("application_id");
    await admin.result("revokeKey", { id: key.id });
    expect((await refused({ key_id: key.id, limit_usd: "5", period: "day" }))[1]).toBe(
      "wrong_state",
    );
    expect(await admin.run(listOf(budgetSchema), "listBudgets")).toMatchObject({ data: [] });
  });

  test("limit, mode, alerts and note can be changed, and period and zone cannot", async () => {
    const { id } = await create(monthly());
    const keyChanges = admin.keyChanges;
    const body = { revision: 1, limit_usd: "7.5", mode: "warn", alerts: [90], note: "raised" };
    const changed = await admin.run(changedBudgetSchema, "updateBudget", { id, body });
    expect(changed).toMatchObject({
      ...body,
      revision: 2,
      limit_usd: "7.500000000",
      state: { left_usd: "7.500000000" },
    });
    expect(admin.keyChanges).toBe(keyChanges + 1);
    const late = await admin.refusal("updateBudget", { id, body });
    expect(late.code).toBe("revision_conflict");
    for (const more of [{ period: "day" }, { time_zone: "UTC" }, { account_id: "acct_x" }]) {
      const refusal = await admin.refusal("updateBudget", { id, body: { revision: 2, ...more } });
      expect(refusal.message).toContain("Leave it out.");
    }
    const gone = await admin.run(removedSchema, "deleteBudget", { id });
    expect(gone).toEqual({ id, deleted: true });
    expect((await admin.refusal("getBudget", { id })).status).toBe(404);
  });

  test("holders manage their own budgets, and see those of operators", async () => {
    const ofOperator = await create(monthly());
    const own = await create({ limit_usd: "1", period: "day" }, holder);
    expect(own).toMatchObject({ account_id: application.accountId, set_by: "account_holder" });
    const list = listOf(budgetSchema);
    const seen = await admin.run(list, "listBudgets", { as: holder });
    expect(seen.data.map(({ id }) => id).toSorted()).toEqual([ofOperator.id, own.id].toSorted());
    const change = { revision: 1, limit_usd: "9" };
    const refusals = [
      await admin.refusal("updateBudget", { id: ofOperator.id, body: change, as: holder }),
      await admin.refusal("deleteBudget", { id: ofOperator.id, as: holder }),
    ];
    for (const { status, message } of refusals) {
      expect(status).toBe(403);
      expect(message).toContain("Ask one, or set a lower");
    }
    await admin.result("updateBudget", { id: own.id, body: change, as: holder });
    await admin.result("deleteBudget", { id: own.id, as: holder });
    const other = holderOf((await admin.application("second")).accountId);
    for (const operation of ["getBudget", "updateBudget", "deleteBudget"]) {
      const request = {
        id: ofOperator.id,
        as: other,
        body: operation === "updateBudget" ? change : undefined,
      };
      expect((await admin.refusal(operation, request)).status).toBe(404);
    }
    expect((await admin.run(list, "listBudgets", { as: other })).data).toEqual([]);
    expect((await refused(monthly(), other)).slice(0, 1)).toEqual([404]);
    expect((await refused(monthly(), auditor)).slice(0, 1)).toEqual([403]);
  });

  test("an operator may change a holder's budget, which stays the holder's", async () => {
    const own = await create({ limit_usd: "1", period: "day" }, holder);
    const body = { revision: 1, limit_usd: "2" };
    const changed = await admin.run(changedBudgetSchema, "updateBudget", { id: own.id, body });
    expect(changed.set_by).toBe("account_holder");
  });

  test("every change is in the audit with its amounts, and a repeated request changes once", async () => {
    const body = monthly();
    const first = await admin.result("createBudget", { body, key: "once" });
    expect((await admin.result("createBudget", { body, key: "once" })).body).toEqual(first.body);
    const { id } = budgetSchema.parse(first.body);
    await admin.result("updateBudget", { id, body: { revision: 1, limit_usd: "6" } });
    await admin.result("updateBudget", { id, body: { revision: 2, limit_usd: "6.0" } });
    await admin.result("deleteBudget", { id });
    const entries = (await admin.audit()).filter(({ subject }) => subject.id === id);
    expect(entries.map(({ action }) => action)).toEqual([
      "budget.delete",
      "budget.update",
      "budget.create",
    ]);
    expect(entries.every(({ accountId }) => accountId === application.accountId)).toBe(true);
    const limits = { before: { limit_usd: "5.000000000" }, after: { limit_usd: "6.000000000" } };
    expect(entries[1]).toMatchObject(limits);
  });

  test("lists go by owner, page by page", async () => {
    const { key } = await admin.issue(application.id);
    const ofAccount = await create(monthly());
    const ofApplication = await create({ ...monthly(), application_id: application.id });
    const ofKey = await create({ ...monthly(), key_id: key.id });
    const list = async (query: Record<string, string>) =>
      (await admin.run(listOf(budgetSchema), "listBudgets", { query })).data
        .map(({ id }) => id)
        .toSorted();
    expect(await list({ key_id: key.id })).toEqual([ofKey.id]);
    expect(await list({ application_id: application.id })).toEqual(
      [ofApplication.id, ofKey.id].toSorted(),
    );
    expect(await list({ account_id: application.accountId })).toHaveLength(3);
    const page = await admin.run(listOf(budgetSchema), "listBudgets", { query: { limit: "2" } });
    const query = { cursor: page.next_cursor ?? "" };
    const rest = await admin.run(listOf(budgetSchema), "listBudgets", { query });
    expect([...page.data, ...rest.data].map(({ id }) => id).toSorted()).toEqual(
      [ofAccount.id, ofApplication.id, ofKey.id].toSorted(),
    );
  });

  test("one for each end user refuses, ends, and tells who spent most", async () => {
    await spend("one", 3 * usd, { endUser: "eu_jane" });
    await spend("two", usd, { endUser: "eu_john" });
    await spend("three", 9 * usd);
    const each = { ...monthly(), each_end_user: true };
    const budget = await create(each);
    expect(budget).toMatchObject({ each_end_user: true, alerts: [], mode: "refuse" });
    expect(budget.state).toMatchObject({ spent_usd: "3.000000000", percent: 60 });
    const wrong = { period: "total", mode: "warn", alerts: [80] };
    for (const [name, value] of Object.entries(wrong)) {
      expect((await refused({ ...each, [name]: value })).slice(0, 3)).toEqual([
        400,
        "invalid_value",
        name,
      ]);
    }
    const body = { revision: 1, mode: "warn" };
    expect((await admin.refusal("updateBudget", { id: budget.id, body })).param).toBe("mode");
    const higher = { revision: 1, limit_usd: "6" };
    const changed = await admin.run(changedBudgetSchema, "updateBudget", {
      id: budget.id,
      body: higher,
    });
    expect(changed.state).toMatchObject({ percent: 50, reserved_usd: null });
    for (let count = 1; count < 5; count += 1) {
      await create({ ...each, application_id: application.id });
    }
    expect((await refused(each))[1]).toBe("wrong_state");
    await create(each, holder);
    await create(monthly());
  });

  test("for each end user is refused where calls are stored without: it would limit nothing", async () => {
    admin.platform = { ...admin.platform, endUsers: "off" };
    const each = monthly({ each_end_user: true });
    const [status, , param, message] = await refused(each);
    expect([status, param]).toEqual([400, "each_end_user"]);
    expect(message).toContain("end_users is off");
    await create(monthly());
  });

  test("one owner has at most 20 of account holders, and as many of operators", async () => {
    for (let count = 0; count < 20; count += 1) await create(monthly(), holder);
    expect((await refused(monthly(), holder))[1]).toBe("wrong_state");
    for (let count = 0; count < 20; count += 1) await create(monthly());
    expect((await refused(monthly()))[1]).toBe("wrong_state");
    // Those for each end user are among them.
    expect((await refused({ ...monthly(), each_end_user: true }))[1]).toBe("wrong_state");
    await create({ ...monthly(), application_id: application.id });
  });

  test("budgets go with their application and their account, and the audit tells which", async () => {
    const { key } = await admin.issue(application.id);
    const ofKey = await create({ key_id: key.id, limit_usd: "1", period: "day" });
    const ofAccount = await create(monthly());
    await spend("one", 7, { keyId: key.id });
    await admin.result("revokeKey", { id: key.id });
    expect((await admin.run(budgetSchema, "getBudget", { id: ofKey.id })).state.percent).toBe(0);
    await admin.result("deleteApplication", { id: application.id });
    expect((await admin.refusal("getBudget", { id: ofKey.id })).status).toBe(404);
    await admin.result("deleteAccount", { id: application.accountId });
    const [ofDeletion, before] = await admin.audit();
    expect(ofDeletion?.before).toMatchObject({ budgets: [ofAccount.id] });
    expect(before?.before).toMatchObject({ budgets: [ofKey.id] });
    const told = await admin.stores.spend.since(0, 0);
    expect(told.spend).toEqual([]);
  });

  test("an erased account leaves no budget and nothing of what was spent", async () => {
    await create(monthly());
    await spend("one", 3 * usd);
    const request = { id: application.accountId, body: { confirm: "first" } };
    const { removed } = await admin.run(erasedSchema, "eraseAccount", request);
    expect(removed).toMatchObject({ budgets: 1, usage_rows: expect.any(Number) });
    await spend("late", usd);
    expect((await admin.stores.spend.since(0, 0)).spend).toEqual([]);
    expect(await admin.dump()).not.toContain('"budget_id"');
  });
});
