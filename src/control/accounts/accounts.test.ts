import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { AdminFixture, holderOf } from "../../../test/support/admin-fixture.ts";
import {
  accountSchema,
  applicationSchema,
  auditEntrySchema,
  auditVerdictSchema,
  issuedKeySchema,
  listOf,
  removedSchema,
  rotatedKeySchema,
} from "../contract.ts";

let admin: AdminFixture;
beforeEach(() => {
  admin = new AdminFixture();
});
afterEach(() => admin[Symbol.asyncDispose]());

describe("accounts", () => {
  test("a new account may have 100 keys and has no plan", async () => {
    const body = { name: "first" };
    const account = await admin.run(accountSchema, "createAccount", { body });
    expect(account).toMatchObject({
      name: "first",
      note: "",
      plans: [],
      max_keys: 100,
      disabled_at: null,
      revision: 1,
    });
    expect(await admin.run(accountSchema, "getAccount", { id: account.id })).toEqual(account);
  });

  test("a name is unique, also after a change", async () => {
    const { id } = await admin.account();
    const other = await admin.account("other");
    expect((await admin.refusal("createAccount", { body: { name: "first" } })).status).toBe(409);
    const body = { revision: 1, name: "first" };
    const refusal = await admin.refusal("updateAccount", { id: other.id, body });
    expect(refusal.code).toBe("already_exists");
    const list = listOf(accountSchema);
    const found = await admin.run(list, "listAccounts", { query: { name: "first" } });
    expect(found.data.map((account) => account.id)).toEqual([id]);
  });

  test("names are one line, and plans must be in the configuration", async () => {
    for (const [body, param] of [
      [{ name: "" }, "name"],
      [{ name: " padded" }, "name"],
      [{ name: "two\nlines" }, "name"],
      [{ name: "a", plans: ["pilot", "none"] }, "plans[1]"],
      [{ name: "a", max_keys: -1 }, "max_keys"],
    ] as const) {
      expect((await admin.refusal("createAccount", { body })).param).toBe(param);
    }
    await admin.run(accountSchema, "createAccount", { body: { name: "Müller & Söhne" } });
  });

  test("disabling an account has a time, disables its keys and can be undone", async () => {
    const { id } = await admin.account();
    const body = { revision: 1, disabled: true };
    const disabled = await admin.run(accountSchema, "updateAccount", { id, body });
    expect(disabled.disabled_at).toBe(new Date(admin.clock.now()).toISOString());
    expect(admin.keyChanges).toBe(1);
    admin.clock.advance(1000);
    const again = { revision: 2, disabled: true };
    expect(await admin.run(accountSchema, "updateAccount", { id, body: again })).toEqual(disabled);
    const enabled = await admin.run(accountSchema, "updateAccount", {
      id,
      body: { revision: 2, disabled: false },
    });
    expect([enabled.disabled_at, enabled.revision]).toEqual([null, 3]);
  });

  test("an account with applications cannot be removed, an empty one can", async () => {
    const { id } = await admin.account();
    const body = { account_id: id, environment: "staging", name: "a" };
    const application = await admin.run(applicationSchema, "createApplication", { body });
    expect((await admin.refusal("deleteAccount", { id })).code).toBe("still_in_use");
    await admin.result("deleteApplication", { id: application.id });
    expect(await admin.run(removedSchema, "deleteAccount", { id })).toEqual({ id, deleted: true });
    expect((await admin.refusal("deleteAccount", { id })).status).toBe(404);
  });
});

describe("applications", () => {
  test("an operator names the account, an account holder need not", async () => {
    const { id } = await admin.account();
    const body = { environment: "production", name: "app: one/two" };
    expect((await admin.refusal("createApplication", { body })).param).toBe("account_id");
    const as = holderOf(id);
    const made = await admin.run(applicationSchema, "createApplication", { as, body });
    expect(made.account_id).toBe(id);
    const elsewhere = { ...body, environment: "nowhere" };
    expect((await admin.refusal("createApplication", { as, body: elsewhere })).param).toBe(
      "environment",
    );
    const twice = await admin.refusal("createApplication", { as, body });
    expect(twice.code).toBe("already_exists");
  });

  test("an application is removed with its revoked keys, and not while a key is live", async () => {
    const { id } = await admin.application("owner");
    const { key } = await admin.issue(id);
    const { key: disabled } = await admin.issue(id);
    await admin.result("revokeKey", { id: key.id });
    await admin.result("updateKey", { id: disabled.id, body: { revision: 1, disabled: true } });
    expect((await admin.refusal("deleteApplication", { id })).code).toBe("still_in_use");
    expect((await admin.result("getKey", { id: key.id })).status).toBe(200);
    await admin.result("revokeKey", { id: disabled.id });
    await admin.result("deleteApplication", { id });
    expect((await admin.refusal("getKey", { id: key.id })).status).toBe(404);
    expect((await admin.refusal("getApplication", { id })).status).toBe(404);
    const [entry] = await admin.audit();
    expect(entry).toMatchObject({ action: "application.delete", subject: { id } });
    expect(new Set([entry?.before?.["keys"]].flat())).toEqual(new Set([disabled.id, key.id]));
  });

  test("keys show the new name of a renamed application", async () => {
    const { id } = await admin.application("owner");
    const { key } = await admin.issue(id);
    await admin.result("updateApplication", { id, body: { revision: 1, name: "renamed" } });
    expect((await admin.result("getKey", { id: key.id })).body).toMatchObject({
      application: "renamed",
    });
    expect(admin.keyChanges).toBe(1);
  });
});

describe("the audit", () => {
  test("has one entry with the differences for each change, and none for a refused one", async () => {
    const { id: account } = await admin.account();
    const application = await admin.run(applicationSchema, "createApplication", {
      body: { account_id: account, environment: "production", name: "a" },
    });
    const issued = await admin.run(issuedKeySchema, "createKey", {
      body: { application_id: application.id, plan: "pilot" },
    });
    const { id } = issued.key;
    await admin.result("updateKey", { id, body: { revision: 1, plan: "standard" } });
    await admin.run(rotatedKeySchema, "rotateKey", { id });
    await admin.result("reportLeaks", { body: { api_keys: [issued.api_key] } });
    await admin.refusal("updateKey", { id, body: { revision: 1, plan: "pilot" } });
    await admin.refusal("deleteApplication", { id: application.id });
    await admin.refusal("createAccount", { body: { name: "first" } });
    await admin.result("revokeKey", { id });
    const body = { revision: 1, name: "b" };
    await admin.result("updateApplication", { id: application.id, body });
    await admin.result("deleteApplication", { id: application.id });
    await admin.result("deleteAccount", { id: account });
    const list = await admin.run(listOf(auditEntrySchema), "listAudit");
    expect(list.data.map(({ action }) => action).toReversed()).toEqual([
      "account.create",
      "application.create",
      "key.create",
      "key.update",
      "key.rotate",
      "key.leak",
      "key.revoke",
      "application.update",
      "application.delete",
      "account.delete",
    ]);
    const update = list.data.find(({ action }) => action === "key.update");
    expect(update).toMatchObject({ before: { plan: "pilot" }, after: { plan: "standard" } });
    expect(Object.keys(update?.after ?? {})).toEqual(["plan"]);
    expect(list.data.every(({ account_id }) => account_id === account)).toBe(true);
  });

  test("is filtered by the fields of entries and by time", async () => {
    await admin.account("early");
    admin.clock.advance(3_600_000);
    const { id } = await admin.account("late");
    const names = async (query: Record<string, string>) => {
      const { data } = await admin.run(listOf(auditEntrySchema), "listAudit", { query });
      return data.map(({ after }) => after?.["name"]);
    };
    expect(await names({ since: "30m" })).toEqual(["late"]);
    expect(await names({ until: "30m" })).toEqual(["early"]);
    expect(await names({ subject_id: id })).toEqual(["late"]);
    expect(await names({ account_id: id })).toEqual(["late"]);
    expect(await names({ action: "key.create" })).toEqual([]);
    expect((await admin.refusal("listAudit", { query: { since: "soon" } })).param).toBe("since");
  });

  test("is checked from the first entry to the last", async () => {
    await admin.account();
    const verdict = await admin.run(auditVerdictSchema, "verifyAudit");
    const [last] = await admin.audit();
    expect(verdict).toMatchObject({
      is_intact: true,
      entries: 1,
      last_digest: last?.digest ?? "",
      problem: null,
      first: { sequence: 1 },
    });
  });
});
