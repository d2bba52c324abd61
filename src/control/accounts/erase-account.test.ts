import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { AdminFixture } from "../../../test/support/admin-fixture.ts";
import { userOf } from "../../../test/contracts/control-fixtures.ts";
import { recordOf } from "../../../test/contracts/usage-fixtures.ts";
import { accountSchema, erasedSchema } from "../contract.ts";

let admin: AdminFixture;
beforeEach(() => {
  admin = new AdminFixture();
});
afterEach(() => admin[Symbol.asyncDispose]());

describe("erasure", () => {
  test("removes everything of the account, and nothing of another", async () => {
    const mine = await admin.application("mine");
    const other = await admin.application("other");
    const records = [mine, other].flatMap(({ accountId, id }) =>
      Array.from({ length: 700 }, (_none, index) =>
        recordOf(`req_${accountId}_${index}`, { accountId, applicationId: id }),
      ),
    );
    await admin.stores.usage.insert(records);
    const { key } = await admin.issue(mine.id);
    await admin.issue(mine.id);
    const { key: kept } = await admin.issue(other.id);
    const id = mine.accountId;
    const wrong = await admin.refusal("eraseAccount", { id, body: { confirm: "other" } });
    expect(wrong.param).toBe("confirm");
    const request = { id, body: { confirm: "mine" }, key: "once" };
    const erased = await admin.run(erasedSchema, "eraseAccount", request);
    expect(erased.removed).toMatchObject({ users: 0, keys: 2, applications: 1 });
    expect(erased.removed.usage_rows).toBeGreaterThanOrEqual(700);
    for (const [operation, gone] of [
      ["getAccount", id],
      ["getApplication", mine.id],
      ["getKey", key.id],
      ["getCall", `req_${id}_0`],
    ] as const) {
      expect((await admin.refusal(operation, { id: gone })).status).toBe(404);
    }
    expect((await admin.result("getKey", { id: kept.id })).status).toBe(200);
    const call = await admin.result("getCall", { id: `req_${other.accountId}_699` });
    expect(call.status).toBe(200);
    expect(await admin.run(erasedSchema, "eraseAccount", request)).toEqual(erased);
  });

  test("an interrupted erasure is finished by a repeated request", async () => {
    const mine = await admin.application("mine");
    await admin.issue(mine.id);
    const request = { id: mine.accountId, body: { confirm: "mine" }, key: "again" };
    const signal = AbortSignal.abort(new Error("the caller left"));
    const broken = admin.result("eraseAccount", { ...request, signal });
    expect(await broken.catch((error: unknown) => error)).toEqual(new Error("the caller left"));
    const stopped = await admin.run(accountSchema, "getAccount", { id: mine.accountId });
    expect(stopped.disabled_at).not.toBeNull();
    const erased = await admin.run(erasedSchema, "eraseAccount", request);
    expect(erased.removed.keys).toBe(1);
    const actions = (await admin.audit()).map(({ action }) => action);
    expect(actions.filter((action) => action === "account.erase_begin")).toHaveLength(2);
  });

  test("is in the audit from its beginning, step by step, with the ids of what it removed", async () => {
    const mine = await admin.application("mine");
    const { accountId } = mine;
    const issued: string[] = [];
    for (let count = 0; count < 501; count += 1) issued.push((await admin.issue(mine.id)).key.id);
    await admin.stores.control.change(({ users }) =>
      users.insert(userOf("user_1", { role: "account_holder", accountId })),
    );
    // An operator has already disabled it.
    const body = { revision: 1, disabled: true };
    await admin.result("updateAccount", { id: accountId, body });
    await admin.result("eraseAccount", { id: accountId, body: { confirm: "mine" } });
    const entries = (await admin.audit()).filter(({ action }) => /^account.erase/.test(action));
    expect(entries.map(({ action }) => action).toReversed()).toEqual([
      "account.erase_begin",
      "account.erase_keys",
      "account.erase_keys",
      "account.erase_applications",
      "account.erase_users",
      "account.erase",
    ]);
    const idsOf = (action: string): readonly unknown[] =>
      entries
        .filter((entry) => entry.action === `account.erase_${action}`)
        .flatMap(({ before }) => before?.["ids"] ?? []);
    expect(new Set(idsOf("keys"))).toEqual(new Set(issued));
    expect([idsOf("applications"), idsOf("users")]).toEqual([[mine.id], ["user_1"]]);
    expect(entries.every(({ subject }) => subject.id === accountId)).toBe(true);
    expect(await admin.dump()).not.toContain("user_1@");
  });

  test("rows of calls that arrive afterwards are not kept", async () => {
    const mine = await admin.application("mine");
    const { accountId } = mine;
    await admin.result("eraseAccount", { id: accountId, body: { confirm: "mine" } });
    const late = recordOf("req_late", { accountId, applicationId: mine.id });
    await admin.stores.usage.insert([late]);
    expect((await admin.refusal("getCall", { id: "req_late" })).status).toBe(404);
  });
});
