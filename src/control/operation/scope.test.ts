import { afterEach, beforeEach, expect, test } from "bun:test";
import type { Principal } from "../../domain/principal.ts";
import { AdminFixture, auditor, holderOf, operator } from "../../../test/support/admin-fixture.ts";
import { accountSchema, applicationSchema, keySchema } from "../contract.ts";

let admin: AdminFixture;
let applicationId: string;
let keyId: string;
let holder: Principal;

beforeEach(async () => {
  admin = new AdminFixture();
  const application = await admin.application("shop");
  applicationId = application.id;
  keyId = (await admin.issue(applicationId)).key.id;
  holder = holderOf(application.accountId);
});
afterEach(() => admin[Symbol.asyncDispose]());

const things = [
  ["updateKey", "getKey", () => keyId],
  ["updateApplication", "getApplication", () => applicationId],
] as const;

type Thing = (typeof things)[number];

async function shown([, get, id]: Thing) {
  const { body } = await admin.result(get, { id: id() });
  return (get === "getKey" ? keySchema : applicationSchema).parse(body);
}

async function turn(thing: Thing, as: Principal, disabled: boolean) {
  const { revision } = await shown(thing);
  const [update, , id] = thing;
  await admin.result(update, { as, id: id(), body: { revision, disabled } });
  return shown(thing);
}

async function refusedToEnable(thing: Thing, as: Principal) {
  const { revision } = await shown(thing);
  const [update, , id] = thing;
  return admin.refusal(update, { as, id: id(), body: { revision, disabled: false } });
}

test("only an operator enables what an operator has disabled", async () => {
  for (const thing of things) {
    expect(await turn(thing, operator, true)).toMatchObject({ disabled_by: "operator" });
    const refusal = await refusedToEnable(thing, holder);
    expect([refusal.code, refusal.param]).toEqual(["not_permitted", "disabled"]);
    expect(refusal.message).toContain("operator disabled it");
    expect((await shown(thing)).disabled_at).not.toBeNull();
    const enabled = await turn(thing, operator, false);
    expect([enabled.disabled_at, enabled.disabled_by]).toEqual([null, null]);
  }
});

test("an account holder enables what it has disabled", async () => {
  for (const thing of things) {
    expect(await turn(thing, holder, true)).toMatchObject({ disabled_by: "account_holder" });
    expect(await turn(thing, holder, false)).toMatchObject({ disabled_by: null });
  }
});

test("an operator may take over a holder's disabling, and the holder cannot undo that", async () => {
  for (const thing of things) {
    const { disabled_at: since } = await turn(thing, holder, true);
    admin.clock.advance(1_000);
    const own = await turn(thing, operator, true);
    expect([own.disabled_at, own.disabled_by]).toEqual([since, "operator"]);
    expect((await turn(thing, holder, true)).disabled_by).toBe("operator");
    expect((await refusedToEnable(thing, holder)).code).toBe("not_permitted");
  }
});

test("the audit has who disabled it, and a holder may still change the rest", async () => {
  await turn(things[0], operator, true);
  const [entry] = await admin.audit();
  expect(entry?.after).toMatchObject({ disabled_by: "operator" });
  const { revision } = await shown(things[0]);
  const request = { as: holder, id: keyId, body: { revision, note: "ours" } };
  expect(await admin.run(keySchema, "updateKey", request)).toMatchObject({ note: "ours" });
});

test("the holder of a disabled account reads and changes nothing", async () => {
  const id = holder.accountId ?? "";
  const body = { revision: 1, disabled: true };
  await admin.run(accountSchema, "updateAccount", { id, body });
  const before = (await admin.audit()).length;
  const as = holder;
  const [ofKey, ofApplication] = [
    { as, id: keyId },
    { as, id: applicationId },
  ];
  for (const [operation, request] of [
    ["createApplication", { as, body: { environment: "production", name: "new" } }],
    ["updateApplication", { ...ofApplication, body: { revision: 1, name: "other" } }],
    ["deleteApplication", ofApplication],
    ["createKey", { as, body: { application_id: applicationId, plan: "pilot" } }],
    ["updateKey", { ...ofKey, body: { revision: 1, disabled: true } }],
    ["rotateKey", ofKey],
    ["revokeKey", ofKey],
    ["createToken", { as, body: { name: "script" } }],
  ] as const) {
    const refusal = await admin.refusal(operation, request);
    expect([operation, refusal.code]).toEqual([operation, "wrong_state"]);
    expect(refusal.message).toContain("account is disabled");
  }
  expect((await admin.audit()).length).toBe(before);
  expect((await admin.result("getKey", ofKey)).status).toBe(200);
  expect((await admin.result("listApplications", { as })).status).toBe(200);
  expect((await admin.result("listKeys", { as: auditor })).status).toBe(200);
  // The operator may still change it.
  await admin.result("updateKey", { id: keyId, body: { revision: 1, note: "seen" } });
});
