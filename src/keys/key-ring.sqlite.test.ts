import { afterEach, beforeEach, expect, test } from "bun:test";
import { unitsIn } from "../domain/limits/capacity.ts";
import { existsSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { bearer, generateApiKey } from "../domain/keys/api-key.ts";
import { GatewayError } from "../domain/errors/gateway-error.ts";
import type { Key } from "../domain/keys/key.ts";
import {
  accountOf,
  applicationOf,
  keyOf,
  secretOf,
} from "../../test/contracts/control-fixtures.ts";
import type { ControlTransaction } from "../store/repositories/control-store.ts";
import { SqliteConnection } from "../store/sqlite/connection/connection.ts";
import { ControlStore } from "../store/repositories/control-store.ts";
import { SqlKeyStore } from "../store/repositories/key-store.ts";
import { createAuthenticate } from "./authenticate.ts";
import { testPeppers } from "../../test/support/test-peppers.ts";
import { KeyRing } from "./key-ring.ts";

/** Two gateways on one database file. */

const peppers = testPeppers();
const { digest } = peppers.first;
const production = { name: "production", models: new Map() };
const application = applicationOf("app_a");
const limits = { requestsPerMinute: 1, tokensPerMinute: 1 };

let folder = "";
let opened: SqliteConnection[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "key-ring-"));
});

afterEach(async () => {
  for (const connection of opened) await connection.close();
  opened = [];
  rmSync(folder, { recursive: true });
});

const pathOf = (): string => join(folder, "sluice.db");

function connect(path = pathOf()): SqliteConnection {
  const connection = new SqliteConnection({
    path,
    busyTimeoutMs: 1,
    lockWaitMs: 20,
    reopenIntervalMs: 0,
  });
  opened.push(connection);
  return connection;
}

const fileEndings = ["", "-wal", "-shm"] as const;

/** Replaces the database files by new ones that hold no database. */
function breakDatabase(): void {
  for (const ending of fileEndings) moveIfThere(pathOf() + ending, `${pathOf()}.good${ending}`);
  writeFileSync(pathOf(), "this is no database ".repeat(500));
}

function mendDatabase(): void {
  for (const ending of fileEndings) moveIfThere(`${pathOf()}.good${ending}`, pathOf() + ending);
}

function moveIfThere(from: string, to: string): void {
  if (existsSync(from)) renameSync(from, to);
}

/** Another process, which changes keys without the rings. */
function operator(clock: ManualClock) {
  const store = new ControlStore(connect(), testPeppers());
  const change = (work: (transaction: ControlTransaction) => Promise<unknown>): Promise<unknown> =>
    store.change(work);
  return {
    prepare: () =>
      change(async (transaction) => {
        await transaction.accounts.insert(accountOf("acct_a"));
        await transaction.applications.insert(application);
      }),
    issue: async (keyId: string, values: Partial<Key> = {}): Promise<string> => {
      const { text, publicId } = newKey();
      await change(async ({ keys, secrets }) => {
        await keys.insert(keyOf(keyId, application, { limits, ...values }));
        await secrets.insert(secretOf(publicId, keyId, { digest: digest(text) }));
      });
      return text;
    },
    /** The old secret works for another minute. */
    rotate: async (keyId: string, old: string): Promise<string> => {
      const { text, publicId } = newKey();
      await change(async ({ secrets }) => {
        await secrets.expire(old.slice(7, 15), clock.now() + 60_000);
        const values = { digest: digest(text), createdAt: clock.now() };
        await secrets.insert(secretOf(publicId, keyId, values));
      });
      return text;
    },
    update: (keyId: string, values: Partial<Key>) =>
      change(async ({ keys }) => {
        const key = await keys.get(keyId);
        if (key !== undefined) await keys.update({ ...key, ...values });
      }),
    disableAccount: () =>
      change(async ({ accounts }) => {
        const account = await accounts.get("acct_a");
        if (account !== undefined) await accounts.update({ ...account, disabledAt: 1 });
      }),
  };
}

function newKey(): { text: string; publicId: string } {
  return generateApiKey((target) => crypto.getRandomValues(target));
}

function gateway(clock: ManualClock) {
  const ring = new KeyRing({
    store: new SqlKeyStore(connect(), clock),
    clock,
    intervalMs: 500,
    onReloaded: () => undefined,
    onReloadFailed: () => undefined,
  });
  const authenticate = createAuthenticate({
    form: bearer,
    peppers,
    clock,
    secrets: ring,
    snapshotMaxAgeMs: 900_000,
    plans: () => new Map(),
    onUsed: () => undefined,
    onOutdated: () => undefined,
    onPlanMissing: () => undefined,
  });
  return {
    ring,
    poll: () => ring.reload().catch(() => undefined),
    /** `200`, or status and rule of the refusal. */
    try: (text: string): string => {
      try {
        authenticate(text, production, () => "192.0.2.1");
        return "200";
      } catch (error) {
        if (!(error instanceof GatewayError)) throw error;
        return `${error.status} ${error.explanation?.rule}`;
      }
    },
  };
}

async function setUp() {
  const clock = new ManualClock({ wallMs: 1_000_000 });
  const admin = operator(clock);
  await admin.prepare();
  return { clock, admin, one: gateway(clock), other: gateway(clock) };
}

test("a key that ends in any way stops working at the next poll, on every gateway", async () => {
  const { admin, one, other } = await setUp();
  const ends: readonly (readonly [string, string, (id: string) => Promise<unknown>])[] = [
    ["revoked", "key_revoked", (id) => admin.update(id, { revokedAt: 5 })],
    ["disabled", "key_disabled", (id) => admin.update(id, { disabledAt: 5 })],
    ["account", "account_disabled", () => admin.disableAccount()],
  ];
  for (const [what, rule, end] of ends) {
    const text = await admin.issue(`key_${what}`);
    await Promise.all([one.poll(), other.poll()]);
    expect([what, one.try(text), other.try(text)]).toEqual([what, "200", "200"]);
    await end(`key_${what}`);
    await Promise.all([one.poll(), other.poll()]);
    const refused = `401 ${rule}`;
    expect([what, one.try(text), other.try(text)]).toEqual([what, refused, refused]);
  }
});

test("a disabled key that is enabled again works at the next poll", async () => {
  const { admin, one } = await setUp();
  const text = await admin.issue("key_a", { disabledAt: 5 });
  await one.poll();
  expect(one.try(text)).toBe("401 key_disabled");
  await admin.update("key_a", { disabledAt: undefined });
  await one.poll();
  expect(one.try(text)).toBe("200");
});

test("calls and recorded uses never restore an older state of a key", async () => {
  const { admin, one, clock } = await setUp();
  const text = await admin.issue("key_a");
  await one.poll();
  const uses = new SqlKeyStore(connect(), clock);
  await admin.update("key_a", { revokedAt: 5 });
  await one.poll();
  await uses.recordLastUse(new Map([[text.slice(7, 15), clock.now()]]));
  await one.poll();
  expect(one.try(text)).toBe("401 key_revoked");
});

test("during a rotation both secrets work, and the old one expires by itself", async () => {
  const { admin, one, clock } = await setUp();
  const old = await admin.issue("key_a");
  await one.poll();
  const young = await admin.rotate("key_a", old);
  await one.poll();
  expect([one.try(old), one.try(young)]).toEqual(["200", "200"]);
  expect(one.ring.find(old.slice(7, 15))?.key).toEqual(
    one.ring.find(young.slice(7, 15))?.key ?? keyOf("none", application),
  );
  clock.advance(59_999);
  expect([one.try(old), one.try(young)]).toEqual(["200", "200"]);
  clock.advance(1);
  expect([one.try(old), one.try(young)]).toEqual(["401 secret_ended", "200"]);
});

test("while the database is broken known keys work and new ones do not get a 401", async () => {
  const { admin, one, clock } = await setUp();
  const known = await admin.issue("key_a");
  await one.poll();
  const young = await admin.issue("key_b");
  breakDatabase();
  clock.advance(5_001);
  await one.poll();
  expect([one.try(known), one.try(young)]).toEqual(["200", "503 snapshot_stale"]);
  mendDatabase();
  await one.poll();
  expect([one.try(known), one.try(young)]).toEqual(["200", "200"]);
});

test("a gateway that starts without a database answers 503 and recovers by itself", async () => {
  const { admin, clock } = await setUp();
  const text = await admin.issue("key_a");
  for (const connection of opened) await connection.close();
  breakDatabase();
  const late = gateway(clock);
  await late.ring.start();
  late.ring.stop();
  expect([late.ring.isLoaded, late.try(text)]).toEqual([false, "503 snapshot_stale"]);
  mendDatabase();
  await late.poll();
  expect([late.ring.isLoaded, late.try(text)]).toEqual([true, "200"]);
});

test("units that another process assigns, raises and withdraws reach every gateway with the key", async () => {
  const { admin, one, other } = await setUp();
  const pool = { provisionedPool: "main", provisionedUnits: 3 };
  const text = await admin.issue("key_a", pool);
  await admin.issue("key_b", { ...pool, provisionedUnits: 4 });
  const units = async (): Promise<readonly number[]> => {
    await Promise.all([one.poll(), other.poll()]);
    expect(one.ring.find(text.slice(7, 15))?.key.provisionedPool).toBe("main");
    return [unitsIn(one.ring.holdings("main")), unitsIn(other.ring.holdings("main"))];
  };
  expect(await units()).toEqual([7, 7]);
  await admin.update("key_a", { provisionedUnits: 10 });
  expect(await units()).toEqual([14, 14]);
  await admin.update("key_b", { provisionedUnits: 0, provisionedPool: undefined });
  expect(await units()).toEqual([10, 10]);
});
