import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { AdminFixture, auditor, holderOf } from "../../../test/support/admin-fixture.ts";
import { readPublicId } from "../../domain/keys/api-key.ts";
import type { Principal } from "../../domain/principal.ts";
import {
  accountSchema,
  issuedKeySchema,
  keySchema,
  leakFindingsSchema,
  listOf,
  rotatedKeySchema,
  type KeyView,
} from "../contract.ts";

let admin: AdminFixture;
let applicationId: string;
let accountId: string;
let holder: Principal;
beforeEach(async () => {
  admin = new AdminFixture();
  ({ id: applicationId, accountId } = await admin.application("owner"));
  holder = holderOf(accountId);
});
afterEach(() => admin[Symbol.asyncDispose]());

const limits = { requests_per_minute: 7, tokens_per_minute: 900 };

function create(more: object, as?: Principal) {
  const body = { application_id: applicationId, plan: "standard", ...more };
  return admin.run(issuedKeySchema, "createKey", { body, ...(as === undefined ? {} : { as }) });
}

function refuseCreate(more: object, as?: Principal) {
  const body = { application_id: applicationId, plan: "standard", ...more };
  return admin.refusal("createKey", { body, ...(as === undefined ? {} : { as }) });
}

async function update(id: string, body: object): Promise<KeyView> {
  const { revision } = await admin.run(keySchema, "getKey", { id });
  return admin.run(keySchema, "updateKey", { id, body: { revision, ...body } });
}

async function listed(status: "active" | "inactive"): Promise<readonly string[]> {
  const { data } = await admin.run(listOf(keySchema), "listKeys", { query: { status } });
  return data.map((key) => key.status);
}

async function disable(
  what: "Account" | "Application",
  id: string,
  disabled: boolean,
): Promise<void> {
  const schema = accountSchema.pick({ revision: true });
  const { revision } = await admin.run(schema, `get${what}`, { id });
  await admin.result(`update${what}`, { id, body: { revision, disabled } });
}

describe("issuing", () => {
  test("a key shows its requested settings and its effective limits", async () => {
    const { key, api_key } = await create({
      plan: "enterprise",
      limits,
      provisioned_units: 3,
      allowed_models: ["alpha-sonnet-4"],
      allowed_networks: ["10.0.0.0/8", "2001:db8::1"],
      expires_at: "2026-06-01T02:00:00+02:00",
      name: "night batch",
      note: "for the night batch",
    });
    expect(key).toMatchObject({
      account_id: accountId,
      application: "search",
      environment: "production",
      plan: "enterprise",
      limits,
      effective_limits: limits,
      provisioned_units: 3,
      allowed_models: ["alpha-sonnet-4"],
      allowed_networks: ["10.0.0.0/8", "2001:db8::1"],
      expires_at: "2026-06-01T00:00:00.000Z",
      name: "night batch",
      note: "for the night batch",
      status: "active",
      revision: 1,
    });
    expect(key.secrets.map(({ public_id }) => public_id)).toEqual([readPublicId(api_key) ?? ""]);
    const stored = await admin.stores.keys.loadKeys(0, 10);
    const digest = stored.changes[0]?.live?.secrets[0]?.digest;
    expect(digest).toEqual(new Uint8Array(admin.services.peppers.first.digest(api_key)));
  });

  test("a custom plan needs limits, others refuse them, and units need a plan that has them", async () => {
    expect((await refuseCreate({ plan: "enterprise" })).param).toBe("limits");
    expect((await refuseCreate({ limits })).param).toBe("limits");
    expect((await refuseCreate({ provisioned_units: 1 })).param).toBe("provisioned_units");
    expect((await create({ plan: "pro", provisioned_units: 1 })).key.provisioned_units).toBe(1);
  });

  test("a name missing in the configuration is refused with its field", async () => {
    const faults: [object, string][] = [
      [{ plan: "none" }, "plan"],
      [{ allowed_models: ["alpha-sonnet-4", "gamma-large"] }, "allowed_models[1]"],
      [{ allowed_models: [] }, "allowed_models"],
      [{ allowed_networks: ["10.0.0.0/33"] }, "allowed_networks[0]"],
      [{ expires_at: "2025-01-01T00:00:00Z" }, "expires_at"],
      [{ expires_at: "tomorrow" }, "expires_at"],
      [{ expires_in_seconds: 0 }, "expires_in_seconds"],
      [{ expires_in_seconds: 60, expires_at: null }, "expires_in_seconds"],
      [{ limits: { ...limits, tokens_per_day: 1 } }, "limits.tokens_per_day"],
      [{ limits: { requests_per_minute: 0, tokens_per_minute: 1 } }, "limits.requests_per_minute"],
      [{ surplus: 1 }, "surplus"],
      [{ name: "x".repeat(101) }, "name"],
      [{ name: "two\nlines" }, "name"],
      [{ note: "x".repeat(1001) }, "note"],
    ];
    for (const [more, param] of faults) {
      const refusal = await refuseCreate(more);
      expect([refusal.status, refusal.param]).toEqual([400, param]);
    }
    expect((await admin.refusal("createKey", { body: { plan: "pro" } })).code).toBe(
      "missing_required_parameter",
    );
    expect((await refuseCreate({ application_id: "app_none" })).status).toBe(404);
  });

  test("an environment removed from the configuration takes no new key", async () => {
    const [production] = admin.platform.environments;
    admin.platform = {
      ...admin.platform,
      environments: production === undefined ? [] : [{ ...production, name: "other" }],
    };
    expect((await refuseCreate({})).param).toBe("environment");
  });
});

describe("account holders", () => {
  test("issue on the plans of their account only, without limits or units of their own", async () => {
    expect((await create({ plan: "pilot" }, holder)).key.plan).toBe("pilot");
    for (const [more, param] of [
      [{ plan: "pro" }, "plan"],
      [{ limits }, "limits"],
      [{ provisioned_units: 0 }, "provisioned_units"],
    ] as const) {
      const refusal = await refuseCreate(more, holder);
      expect([refusal.status, refusal.code, refusal.param]).toEqual([403, "not_permitted", param]);
    }
  });

  test("of an account without plans issue no keys until an operator gives it some", async () => {
    const body = { revision: 1, plans: [] };
    await admin.result("updateAccount", { id: accountId, body });
    const refusal = await refuseCreate({ plan: "pilot" }, holder);
    expect([refusal.status, refusal.param]).toEqual([403, "plan"]);
    expect(refusal.message).toContain("Your account has no plans to issue keys on.");
    const plans = { revision: 2, plans: ["pilot"] };
    await admin.result("updateAccount", { id: accountId, body: plans });
    expect((await create({ plan: "pilot" }, holder)).key.plan).toBe("pilot");
  });

  test("change a key that an operator gave limits, but not the limits", async () => {
    const { key } = await create({ plan: "enterprise", limits });
    const changed = await admin.run(keySchema, "updateKey", {
      as: holder,
      id: key.id,
      body: { revision: 1, note: "ours" },
    });
    expect([changed.note, changed.limits]).toEqual(["ours", limits]);
    const body = { revision: 2, limits: null };
    expect((await admin.refusal("updateKey", { as: holder, id: key.id, body })).status).toBe(403);
  });

  test("have at most as many keys as their account may; revoked ones do not count", async () => {
    const account = await admin.run(accountSchema, "getAccount", { id: accountId });
    const body = { revision: account.revision, max_keys: 2 };
    await admin.result("updateAccount", { id: accountId, body });
    const { key } = await create({}, holder);
    await create({}, holder);
    await admin.result("updateKey", { id: key.id, body: { revision: 1, disabled: true } });
    const refusal = await refuseCreate({}, holder);
    expect([refusal.status, refusal.code]).toEqual([409, "wrong_state"]);
    await admin.result("revokeKey", { id: key.id, as: holder });
    await create({}, holder);
    await create({});
  });
});

describe("changing", () => {
  test("absent fields stay unchanged, null removes a value", async () => {
    const { key } = await create({ allowed_models: ["embed-text-v2"], note: "n" });
    const noted = await update(key.id, { allowed_networks: ["192.0.2.0/24"] });
    expect(noted).toMatchObject({ allowed_models: ["embed-text-v2"], note: "n", revision: 2 });
    const cleared = await update(key.id, { allowed_models: null, allowed_networks: null });
    expect(cleared).toMatchObject({ allowed_models: null, allowed_networks: null, revision: 3 });
    const named = await update(key.id, { name: "nightly" });
    expect(named).toMatchObject({ name: "nightly", note: "n", revision: 4 });
    expect(await update(key.id, { name: "" })).toMatchObject({ name: "", note: "n", revision: 5 });
  });

  test("a plan with its own limits drops the key's; units must be given back first", async () => {
    const { key } = await create({ plan: "enterprise", limits, provisioned_units: 2 });
    const body = { revision: 1, plan: "standard" };
    expect((await admin.refusal("updateKey", { id: key.id, body })).param).toBe(
      "provisioned_units",
    );
    const moved = await update(key.id, { plan: "standard", provisioned_units: 0 });
    expect(moved.limits).toBeNull();
    expect(moved.effective_limits?.requests_per_minute).toBe(300);
    const custom = { revision: 2, plan: "enterprise" };
    expect((await admin.refusal("updateKey", { id: key.id, body: custom })).param).toBe("limits");
  });

  test("a stale revision is refused and changes nothing", async () => {
    const { key } = await create({});
    await update(key.id, { note: "first" });
    const body = { revision: 1, note: "second" };
    const refusal = await admin.refusal("updateKey", { id: key.id, body });
    expect([refusal.status, refusal.code]).toEqual([409, "revision_conflict"]);
    expect((await admin.run(keySchema, "getKey", { id: key.id })).note).toBe("first");
  });

  test("a change without a difference is none", async () => {
    const { key } = await create({ note: "same" });
    const entries = (await admin.audit()).length;
    expect((await update(key.id, { note: "same" })).revision).toBe(1);
    expect(await admin.audit()).toHaveLength(entries);
  });

  test("an end in so many seconds counts from the change, once for all its repeats", async () => {
    const body = { application_id: applicationId, plan: "standard", expires_in_seconds: 60 };
    const request = { body, key: "deploy-1" };
    const made = await admin.run(issuedKeySchema, "createKey", request);
    const end = new Date(admin.clock.now() + 60_000).toISOString();
    expect(made.key.expires_at).toBe(end);
    admin.clock.advance(30_000);
    expect(await admin.run(issuedKeySchema, "createKey", request)).toEqual(made);
    const later = new Date(admin.clock.now() + 90_000).toISOString();
    expect((await update(made.key.id, { expires_in_seconds: 90 })).expires_at).toBe(later);
  });

  test("the status follows from times: active, disabled, expired, revoked", async () => {
    const { key } = await create({ expires_at: "2026-01-02T00:00:00Z" });
    const { id } = key;
    const status = async (): Promise<string> =>
      (await admin.run(keySchema, "getKey", { id })).status;
    await update(id, { disabled: true });
    expect(await status()).toBe("disabled");
    await update(id, { disabled: false });
    expect(await status()).toBe("active");
    admin.clock.advance(25 * 3_600_000);
    expect(await status()).toBe("expired");
    await update(id, { expires_at: null });
    expect(await status()).toBe("active");
    const revoked = await admin.run(keySchema, "revokeKey", { id });
    expect([revoked.status, revoked.secrets[0]?.status]).toEqual(["revoked", "ended"]);
    const body = { revision: revoked.revision, note: "x" };
    expect((await admin.refusal("updateKey", { id, body })).code).toBe("wrong_state");
  });

  test("a key with a disabled owner, or without a live secret, is not active", async () => {
    const { key, api_key: first } = await create({});
    let text = first;
    const status = async () => (await admin.run(keySchema, "getKey", { id: key.id })).status;
    for (const [operation, id, expected] of [
      ["Application", applicationId, "application_disabled"],
      ["Account", accountId, "account_disabled"],
    ] as const) {
      expect([await status(), await listed("active"), await listed("inactive")]).toEqual([
        "active",
        ["active"],
        [],
      ]);
      await disable(operation, id, true);
      expect([await status(), await listed("active"), await listed("inactive")]).toEqual([
        expected,
        [],
        [expected],
      ]);
      const rotation = { id: key.id, body: { compromised: true } };
      const rotated = await admin.run(rotatedKeySchema, "rotateKey", rotation);
      text = rotated.api_key;
      const issued = await create({});
      expect([rotated.key.status, issued.key.status]).toEqual([expected, expected]);
      await admin.stores.control.change((transaction) => transaction.keys.delete(issued.key.id));
      await disable(operation, id, false);
    }
    await admin.result("reportLeaks", { body: { api_keys: [text] } });
    expect([await status(), await listed("active")]).toEqual(["no_secret", []]);
    expect(await listed("inactive")).toEqual(["no_secret"]);
  });

  test("a key's own state takes precedence over its owners'", async () => {
    const { key } = await create({});
    await admin.result("updateApplication", {
      id: applicationId,
      body: { revision: 1, disabled: true },
    });
    await update(key.id, { disabled: true });
    expect((await admin.run(keySchema, "getKey", { id: key.id })).status).toBe("disabled");
    expect((await admin.run(keySchema, "revokeKey", { id: key.id })).status).toBe("revoked");
  });

  test("revoking twice changes nothing the second time", async () => {
    const { key } = await create({});
    const first = await admin.run(keySchema, "revokeKey", { id: key.id });
    admin.clock.advance(1000);
    const entries = (await admin.audit()).length;
    expect(await admin.run(keySchema, "revokeKey", { id: key.id })).toEqual(first);
    expect(await admin.audit()).toHaveLength(entries);
  });
});

describe("finding", () => {
  test("a key is found by the beginning of any of its API keys", async () => {
    const { key, api_key } = await create({});
    const rotated = await admin.run(rotatedKeySchema, "rotateKey", { id: api_key.slice(0, 15) });
    for (const text of [api_key, rotated.api_key]) {
      const found = await admin.run(keySchema, "getKey", { id: text.slice(0, 15) });
      expect(found.id).toBe(key.id);
    }
    expect((await admin.refusal("getKey", { id: "sk-slc_00000000" })).status).toBe(404);
  });

  test("lists are filtered and continue where the previous page ended", async () => {
    const other = await admin.application("owner", "chat");
    const ids: string[] = [];
    for (const plan of ["pilot", "standard", "standard"]) {
      admin.clock.advance(1);
      ids.unshift((await create({ plan })).key.id);
    }
    await admin.issue(other.id);
    const keys = listOf(keySchema);
    const list = async (query: Record<string, string>) => admin.run(keys, "listKeys", { query });
    const mine = { application_id: applicationId };
    expect((await list(mine)).data.map(({ id }) => id)).toEqual(ids);
    expect((await list({ ...mine, plan: "standard" })).data).toHaveLength(2);
    await admin.result("revokeKey", { id: ids[0] ?? "" });
    expect((await list({ ...mine, status: "inactive" })).data.map(({ id }) => id)).toEqual([
      ids[0] ?? "",
    ]);
    expect((await list({ ...mine, status: "active" })).data).toHaveLength(2);
    const page = await list({ ...mine, limit: "2" });
    const rest = await list({ ...mine, limit: "2", cursor: page.next_cursor ?? "" });
    expect([...page.data, ...rest.data].map(({ id }) => id)).toEqual(ids);
    expect(rest.next_cursor).toBeNull();
  });

  test("invalid queries are refused with their field", async () => {
    for (const [query, param] of [
      [{ limit: "0" }, "limit"],
      [{ limit: "501" }, "limit"],
      [{ limit: "many" }, "limit"],
      [{ cursor: "nonsense" }, "cursor"],
      [{ status: "old" }, "status"],
      [{ acount_id: "a" }, "acount_id"],
    ] as const) {
      const refusal = await admin.refusal("listKeys", { query });
      expect([refusal.status, refusal.param]).toEqual([400, param]);
    }
  });
});

describe("leaks", () => {
  test("each text gets its status, and only live secrets are ended", async () => {
    const kept = await create({});
    const { key, api_key } = await create({});
    const rotated = await admin.run(rotatedKeySchema, "rotateKey", { id: key.id });
    const revoked = await create({});
    await admin.result("revokeKey", { id: revoked.key.id });
    const body = { api_keys: ["hunter2", ` ${api_key} `, revoked.api_key, forge(kept.api_key)] };
    const report = () => admin.run(leakFindingsSchema, "reportLeaks", { body });
    const outcomes = async () => (await report()).data.map(({ outcome }) => outcome);
    expect(await outcomes()).toEqual(["not_a_key", "secret_ended", "ended", "unknown"]);
    expect(await outcomes()).toEqual(["not_a_key", "ended", "ended", "unknown"]);
    const found = await admin.run(keySchema, "getKey", { id: key.id });
    const live = found.secrets.filter(({ status }) => status === "live");
    expect(live.map(({ public_id }) => public_id)).toEqual([readPublicId(rotated.api_key) ?? ""]);
    expect(found.status).toBe("active");
  });

  test("a check without ending ends nothing", async () => {
    const { key, api_key } = await create({});
    const body = { api_keys: [api_key], disable: false };
    const { data } = await admin.run(leakFindingsSchema, "reportLeaks", { body });
    expect(data).toEqual([
      { hint: api_key.slice(0, 15), key_id: key.id, application: "search", outcome: "live" },
    ]);
    expect((await admin.run(keySchema, "getKey", { id: key.id })).secrets[0]?.status).toBe("live");
  });

  test("only operators may report", async () => {
    for (const as of [holder, auditor]) {
      const refusal = await admin.refusal("reportLeaks", { as, body: { api_keys: ["x"] } });
      expect(refusal.status).toBe(403);
    }
  });
});

/** Another well-formed API key with the public id of this one. */
function forge(text: string): string {
  const publicId = text.slice(7, 15);
  const body = `sk-slc_${publicId}_${"0".repeat(43)}`;
  const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  let rest = Bun.hash.crc32(body);
  let checksum = "";
  while (checksum.length < 6) {
    checksum = digits.charAt(rest % 62) + checksum;
    rest = Math.floor(rest / 62);
  }
  return body + checksum;
}
