import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { AdminFixture, holderOf, operator, poolOf } from "../../test/support/admin-fixture.ts";
import { plainKey } from "../../test/support/plain-key.ts";
import { floorTokens, guaranteedTokens, heldTokens } from "../domain/limits/capacity.ts";
import { issuedKeySchema, keySchema, poolDetailsSchema, poolsSchema } from "./contract.ts";
import type { KeyView, PoolView } from "./contract.ts";
import { createRunOffline } from "./operation/run-offline.ts";
import type { PlatformPool } from "./services.ts";

/** Units of the fixture's pool that can be sold. */
const sellable = 78;

let admin: AdminFixture;
let applicationId: string;
let accountId: string;
beforeEach(async () => {
  admin = new AdminFixture();
  ({ id: applicationId, accountId } = await admin.application("owner"));
});
afterEach(() => admin[Symbol.asyncDispose]());

function bodyOf(more: object): object {
  return { application_id: applicationId, plan: "pro", ...more };
}

async function create(more: object): Promise<KeyView> {
  return (await admin.run(issuedKeySchema, "createKey", { body: bodyOf(more) })).key;
}

function refuse(more: object) {
  return admin.refusal("createKey", { body: bodyOf(more) });
}

async function changeOf(id: string, body: object) {
  const { revision } = await admin.run(keySchema, "getKey", { id });
  return { id, body: { revision, ...body } };
}

async function update(id: string, body: object): Promise<KeyView> {
  return admin.run(keySchema, "updateKey", await changeOf(id, body));
}

async function refuseUpdate(id: string, body: object) {
  return admin.refusal("updateKey", await changeOf(id, body));
}

async function pool(name = "main"): Promise<PoolView> {
  return admin.run(poolDetailsSchema, "getPool", { name });
}

function configure(...pools: readonly PlatformPool[]): void {
  admin.platform = { ...admin.platform, pools: new Map(pools.map((each) => [each.name, each])) };
}

describe("the pool of units", () => {
  test("is the only one of the configuration, or the named one", async () => {
    expect(await create({ provisioned_units: 2 })).toMatchObject({
      provisioned_units: 2,
      provisioned_pool: "main",
    });
    configure(poolOf("main"), poolOf("second"));
    expect((await refuse({ provisioned_units: 2 })).param).toBe("provisioned_pool");
    const named = await create({ provisioned_units: 2, provisioned_pool: "second" });
    expect(named.provisioned_pool).toBe("second");
    expect((await update(named.id, { provisioned_units: 3 })).provisioned_pool).toBe("second");
  });

  test("must be configured and serve the key's environment, and the refusal lists those that do", async () => {
    const staging = { models: [{ environment: "staging", alias: "gamma-large" }] };
    configure(poolOf("main"), poolOf("far", staging));
    for (const [provisioned_pool, advice] of [
      ["none", "unknown pool; use main"],
      ["far", "pool far serves no model of environment production; use main"],
    ] as const) {
      const refusal = await refuse({ provisioned_units: 1, provisioned_pool });
      expect([refusal.status, refusal.param]).toEqual([400, "provisioned_pool"]);
      expect(refusal.message).toContain(advice);
    }
    configure(poolOf("far", staging));
    const unserved = await refuse({ provisioned_units: 1 });
    expect([unserved.status, unserved.param]).toEqual([400, "provisioned_units"]);
    expect(unserved.message).toContain("no pool serves a model of environment production");
    configure();
    expect((await refuse({ provisioned_units: 1 })).message).toContain("add one to 'pools'");
  });

  test("is removed with the last unit, and refused for a key without units", async () => {
    const { id } = await create({ provisioned_units: 2 });
    const cleared = await update(id, { provisioned_units: 0 });
    expect([cleared.provisioned_units, cleared.provisioned_pool]).toEqual([0, null]);
    expect((await refuseUpdate(id, { provisioned_pool: "main" })).param).toBe("provisioned_pool");
    expect((await refuse({ provisioned_pool: "main" })).status).toBe(400);
    expect((await create({ provisioned_pool: null })).provisioned_pool).toBeNull();
  });

  test("is not checked by other changes after it left the configuration", async () => {
    const { id } = await create({ provisioned_units: 2 });
    configure();
    const noted = await update(id, { note: "changed" });
    expect([noted.note, noted.provisioned_pool]).toEqual(["changed", "main"]);
    expect((await refuseUpdate(id, { provisioned_units: 3 })).status).toBe(400);
    expect((await update(id, { provisioned_units: 0 })).provisioned_pool).toBeNull();
  });

  test("is added to units from before there were pools when they are set", async () => {
    const { key } = await admin.issue(applicationId, { plan: "pro", provisionedUnits: 4 });
    expect((await update(key.id, { note: "n" })).provisioned_pool).toBeNull();
    expect((await pool()).sold_units).toBe(0);
    expect((await update(key.id, { provisioned_units: 4 })).provisioned_pool).toBe("main");
    expect((await pool()).sold_units).toBe(4);
  });

  test("is set by operators only, and is in the audit", async () => {
    const { id } = await create({ provisioned_units: 2 });
    const as = holderOf(accountId);
    const body = { revision: 1, provisioned_pool: "main" };
    const refusal = await admin.refusal("updateKey", { as, id, body });
    expect([refusal.status, refusal.param]).toEqual([403, "provisioned_pool"]);
    await update(id, { provisioned_units: 0 });
    const [entry] = await admin.audit();
    expect([entry?.before, entry?.after]).toEqual([
      { provisioned_units: 2, provisioned_pool: "main" },
      { provisioned_units: 0, provisioned_pool: null },
    ]);
  });
});

describe("overselling", () => {
  test("is refused with the arithmetic, and the remaining units can still be sold", async () => {
    await create({ provisioned_units: 60 });
    const refusal = await refuse({ provisioned_units: 30 });
    expect([refusal.status, refusal.code, refusal.param]).toEqual([
      409,
      "pool_oversold",
      "provisioned_units",
    ]);
    expect(refusal.message).toBe(
      "Pool main cannot hold 30 more units: (60 + 30) x 10,000 tokens x 60/59 = 915,255 held, " +
        "+ 200,000 never sold = 1,115,255 of its 1,000,000 tokens per minute. Units left: 18.",
    );
    expect(JSON.parse(JSON.stringify(refusal.toBody()))).toEqual({
      error: {
        message: refusal.message,
        type: "invalid_request_error",
        param: "provisioned_units",
        code: "pool_oversold",
        details: {
          pool: "main",
          tokens_per_minute: 1_000_000,
          unit_tokens_per_minute: 10_000,
          floor_tokens_per_minute: 200_000,
          sold_units: 60,
          requested_units: 30,
          held_tokens_per_minute: 915_255,
          sellable_units: sellable,
          units_left: 18,
        },
      },
    });
    expect((await admin.audit()).filter(({ action }) => action === "key.create")).toHaveLength(1);
    await create({ provisioned_units: 18 });
    expect((await refuse({ provisioned_units: 1 })).message).toContain("1 more unit:");
  });

  test("counts a raise by its difference, and a move in full", async () => {
    configure(poolOf("main"), poolOf("second"));
    const main = { provisioned_pool: "main" };
    const { id } = await create({ ...main, provisioned_units: 70 });
    expect((await update(id, { provisioned_units: sellable })).provisioned_units).toBe(sellable);
    const raised = await refuseUpdate(id, { provisioned_units: sellable + 1 });
    expect(raised.toBody().error).toMatchObject({ details: { requested_units: 1 } });
    await create({ provisioned_units: 1, provisioned_pool: "second" });
    const moved = await refuseUpdate(id, { provisioned_pool: "second" });
    expect(moved.toBody().error).toMatchObject({
      details: { pool: "second", sold_units: 1, requested_units: sellable },
    });
    const fits = { provisioned_pool: "second", provisioned_units: sellable - 1 };
    expect((await update(id, fits)).provisioned_pool).toBe("second");
    expect((await pool("main")).sold_units).toBe(0);
  });

  test("counts keys that are disabled themselves or by an owner, not revoked or expired ones", async () => {
    const { id: disabled } = await create({ provisioned_units: 30 });
    await update(disabled, { disabled: true });
    await admin.result("updateAccount", { id: accountId, body: { revision: 1, disabled: true } });
    const { id: expiring } = await create({
      provisioned_units: 40,
      expires_at: "2026-01-02T00:00:00Z",
    });
    expect((await refuse({ provisioned_units: 9 })).code).toBe("pool_oversold");
    admin.clock.advance(86_400_000);
    const { id: revoked } = await create({ provisioned_units: 48 });
    expect((await update(disabled, { disabled: false })).provisioned_units).toBe(30);
    // Postponing the end would sell the 40 units again.
    const back = await refuseUpdate(expiring, { expires_at: null });
    expect(back.toBody().error).toMatchObject({ details: { sold_units: 78, requested_units: 40 } });
    expect((await update(expiring, { note: "n" })).status).toBe("expired");
    await admin.result("revokeKey", { id: revoked });
    expect((await update(expiring, { expires_at: null })).provisioned_units).toBe(40);
    expect((await pool()).sold_units).toBe(70);
  });

  test("reveals nothing of others' units to account holders", async () => {
    const { id } = await create({ provisioned_units: 5, expires_at: "2026-01-02T00:00:00Z" });
    admin.clock.advance(86_400_000);
    await create({ provisioned_units: sellable });
    const as = holderOf(accountId);
    const request = await changeOf(id, { expires_at: null });
    const refusal = await admin.refusal("updateKey", { as, ...request });
    expect([refusal.status, refusal.code]).toEqual([409, "pool_oversold"]);
    expect(JSON.stringify(refusal.toBody())).not.toContain(String(sellable));
    expect(refusal.toBody().error).not.toHaveProperty("details");
  });

  test("by a smaller pool in the configuration stops only sales", async () => {
    const { id } = await create({ provisioned_units: sellable });
    configure(poolOf("main", { tokensPerMinute: 500_000 }));
    expect((await pool()).status).toBe("oversold");
    expect((await update(id, { note: "n" })).provisioned_units).toBe(sellable);
    expect((await update(id, { provisioned_units: 50 })).provisioned_units).toBe(50);
    expect((await refuseUpdate(id, { provisioned_units: 51 })).code).toBe("pool_oversold");
    expect(await pool()).toMatchObject({ sellable_units: 39, units_left: 0, sold_units: 50 });
  });

  test("a missing pool is reported with advice for its reader", async () => {
    const { id } = await create({ provisioned_units: 5, expires_at: "2026-01-02T00:00:00Z" });
    admin.clock.advance(86_400_000);
    configure(poolOf("other"));
    const request = await changeOf(id, { expires_at: null });
    const ofOperator = await admin.refusal("updateKey", request);
    expect(ofOperator.message).toContain(
      "pool main is no longer configured; set units of another, or 0",
    );
    const ofHolder = await admin.refusal("updateKey", { as: holderOf(accountId), ...request });
    expect(ofHolder.message).toContain("pool main is no longer configured; ask an operator");
    expect(ofHolder.param).toBe("provisioned_pool");
  });

  test("cannot happen with concurrent sales, including the command line's", async () => {
    const offline = createRunOffline(admin.services, admin.operations);
    const { id } = await create({ provisioned_units: 1 });
    const { signal } = new AbortController();
    const call = { id: "req_test", signal, address: undefined, principal: operator };
    const sales = Array.from({ length: 60 }, async (_, index) => {
      const body = bodyOf({ provisioned_units: (index % 5) + 1 });
      if (index % 3 > 0) return admin.result("createKey", { body }).catch(() => undefined);
      return offline({ method: "POST", path: "/admin/v1/keys", body, call });
    });
    const raises = Array.from({ length: 20 }, (_, index) =>
      update(id, { provisioned_units: index + 2 }).catch(() => undefined),
    );
    await Promise.all([...sales, ...raises]);
    const { sold_units: sold } = await pool();
    const room = heldTokens(guaranteedTokens(sold, poolOf("main"))) + floorTokens(poolOf("main"));
    expect(room).toBeLessThanOrEqual(1_000_000);
    // Together they asked for far more than is available, in steps down to one unit.
    expect(sold).toBe(sellable);
  });
});

describe("pools", () => {
  test("show their capacity, the sold units and their keys", async () => {
    configure(poolOf("main"), poolOf("own", { kind: "dedicated", onDemandFloorPercent: 0 }));
    const first = await create({ provisioned_units: 2, provisioned_pool: "main" });
    admin.clock.advance(1);
    const second = await create({ provisioned_units: 3, provisioned_pool: "main" });
    await create({ plan: "standard" });
    const shown = await admin.run(poolDetailsSchema, "getPool", { name: "main" });
    expect(shown).toMatchObject({
      name: "main",
      status: "ok",
      kind: "shared",
      tokens_per_minute: 1_000_000,
      max_in_flight: null,
      unit_tokens_per_minute: 10_000,
      on_demand_floor_percent: 20,
      floor_tokens_per_minute: 200_000,
      sold_units: 5,
      sold_tokens_per_minute: 50_000,
      held_tokens_per_minute: 50_848,
      sellable_units: sellable,
      units_left: sellable - 5,
      models: [{ environment: "production", alias: "alpha-sonnet-4" }],
      targets: ["upstream-a/model-a"],
      has_more_keys: false,
    });
    expect(shown.keys.map((key) => [key.id, key.provisioned_units])).toEqual([
      [second.id, 3],
      [first.id, 2],
    ]);
    const { data } = await admin.run(poolsSchema, "listPools");
    const units = data.map((each) => [each.name, each.sold_units, each.sellable_units]);
    expect(units).toEqual([
      ["main", 5, sellable],
      ["own", 0, 98],
    ]);
    const query = { provisioned_pool: "main" };
    const page = (await admin.result("listKeys", { query })).body;
    expect(page).toMatchObject({ data: [{ id: second.id }, { id: first.id }] });
    expect((await admin.refusal("getPool", { name: "none" })).status).toBe(404);
  });

  test("are shown after they left the configuration while keys have their units", async () => {
    await create({ provisioned_units: 2 });
    configure(poolOf("second"));
    const { data } = await admin.run(poolsSchema, "listPools");
    expect(data.map(({ name, status }) => [name, status])).toEqual([
      ["second", "ok"],
      ["main", "not_configured"],
    ]);
    expect(await pool()).toMatchObject({ kind: null, sold_units: 2, sellable_units: 0 });
  });

  test("show account holders the units of their keys, and nothing of others", async () => {
    const other = await admin.application("other");
    await create({ provisioned_units: 2 });
    await admin.issue(other.id, { plan: "pro", provisionedUnits: 5, provisionedPool: "main" });
    configure(poolOf("main"), poolOf("second"));
    const as = holderOf(accountId);
    const { data } = await admin.run(poolsSchema, "listPools", { as });
    expect(data).toMatchObject([
      {
        name: "main",
        kind: "shared",
        unit_tokens_per_minute: 10_000,
        sold_units: 2,
        sold_tokens_per_minute: 20_000,
        status: null,
        tokens_per_minute: null,
        floor_tokens_per_minute: null,
        units_left: null,
        targets: null,
      },
    ]);
    const shown = await admin.run(poolDetailsSchema, "getPool", { as, name: "main" });
    expect(shown.keys.map((key) => key.account_id)).toEqual([accountId]);
    for (const name of ["second", "none"]) {
      expect((await admin.refusal("getPool", { as, name })).status).toBe(404);
    }
  });

  test("list the first 500 keys, and mark that there are more", async () => {
    configure(poolOf("main", { unitTokensPerMinute: 1 }));
    await admin.services.store.change(async (to) => {
      const application = await to.applications.get(applicationId);
      if (application === undefined) throw new Error("the application is gone");
      for (let index = 0; index < 501; index += 1) {
        const own = { id: `key_${index}`, accountId, applicationId, createdAt: index };
        const units = { provisionedUnits: 1, provisionedPool: "main", plan: "pro" };
        const { environment, name } = application;
        await to.keys.insert(plainKey({ ...own, ...units, environment, application: name }));
      }
    });
    const shown = await admin.run(poolDetailsSchema, "getPool", { name: "main" });
    expect([shown.keys.length, shown.has_more_keys, shown.sold_units]).toEqual([500, true, 501]);
  });
});
