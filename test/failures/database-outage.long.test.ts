import { existsSync } from "node:fs";
import { expect, test } from "bun:test";
import { ManualClock } from "../support/manual-clock.ts";
import { holdDatabase } from "./database-holder.ts";
import {
  eventually,
  removeFolder,
  spoilDatabase,
  startOutageGateway,
  type OutageGateway,
} from "./outage-gateway.ts";

const away = "503 storage_unavailable";

/** The begin and end of an outage of the database, and what it stops. */
const outages = {
  usage: ["usage cannot be stored", "usage is stored again"],
  keys: ["keys cannot be read", "keys can be read again"],
  lastUse: ["the last use of keys cannot be stored", "the last use of keys is stored again"],
} as const;

function linesOf({ logged }: OutageGateway, name: keyof typeof outages): readonly number[] {
  return outages[name].map(logged);
}

async function times<Result>(count: number, work: () => Promise<Result>): Promise<Set<Result>> {
  const results = new Set<Result>();
  for (let index = 0; index < count; index += 1) results.add(await work());
  return results;
}

let names = 0;
const createAccount = ({ admin }: OutageGateway): Promise<string> =>
  admin("POST", "/accounts", { name: `account ${(names += 1)}` });

/** Checks that every answered call has one row and that there are no others. */
async function expectAllRows(outage: OutageGateway): Promise<void> {
  await eventually("the ledger is empty", async () => {
    const rows = await outage.gateway.usage().catch(() => []);
    return rows.length >= outage.answered;
  });
  const rows = await outage.gateway.usage();
  expect(new Set(rows.map(({ id }) => id)).size).toBe(rows.length);
  expect(rows.length).toBe(outage.answered);
}

test("calls, reads and readiness continue while another process keeps writing", async () => {
  await using outage = await startOutageGateway();
  const { path, gateway, logged } = outage;
  expect(await times(3, outage.call)).toEqual(new Set([200]));
  await gateway.usage();
  await using holder = await holdDatabase(path, "write");
  const changing = createAccount(outage);
  expect(await times(50, outage.call)).toEqual(new Set([200]));
  expect(await outage.admin("GET", "/accounts")).toBe("200");
  expect(await outage.unknownKey()).toBe(401);
  expect(await outage.isReady()).toBe(true);
  expect(await changing).toBe(away);
  const response = await gateway.admin("DELETE", "/admin/v1/accounts/acct_1");
  expect([response.status, response.headers.get("retry-after")]).toEqual([503, "1"]);
  await eventually("usage is known to wait", () => logged(outages.usage[0]) > 0);
  expect(await times(50, outage.call)).toEqual(new Set([200]));
  expect(await outage.isReady()).toBe(true);
  await holder.release();
  await eventually("usage is stored again", () => logged(outages.usage[1]) > 0);
  expect(await createAccount(outage)).toBe("201");
  await expectAllRows(outage);
  expect(linesOf(outage, "usage")).toEqual([1, 1]);
  expect(linesOf(outage, "keys")).toEqual([0, 0]);
  expect([
    logged("the database is unavailable"),
    logged("the database is available again"),
  ]).toEqual([1, 1]);
}, 180_000);

test("nothing is refused while another process writes for 1.5 seconds at a time", async () => {
  await using outage = await startOutageGateway();
  const waits: number[] = [];
  for (let round = 0; round < 3; round += 1) {
    await using holder = await holdDatabase(outage.path, "write");
    const beganAt = performance.now();
    const changing = createAccount(outage);
    expect(await times(20, outage.call)).toEqual(new Set([200]));
    // Counts waiting requests instead of time, because the machine may be busy.
    await Bun.sleep(Math.max(0, 1_500 - (performance.now() - beganAt)));
    await holder.release();
    expect(await changing).toBe("201");
    waits.push(Math.round(performance.now() - beganAt));
  }
  process.stdout.write(`changes waited ${waits.join(", ")} ms for others\n`);
  await expectAllRows(outage);
  expect(outage.logged("the database is unavailable")).toBe(0);
  for (const name of ["usage", "keys", "lastUse"] as const) {
    expect(linesOf(outage, name)).toEqual([0, 0]);
  }
}, 180_000);

const losses = [
  // Only an operator can repair that, so readiness fails.
  { what: "nonsense in the place of the database", take: spoilDatabase, staysReady: false },
  { what: "a folder that is gone", take: removeFolder, staysReady: true },
];

test.each(losses)(
  "with $what, known keys work, unknown ones get 503, until it recovers",
  async ({ take, staysReady }) => {
    await using outage = await startOutageGateway();
    const { path, logged } = outage;
    expect(await times(5, outage.call)).toEqual(new Set([200]));
    await outage.gateway.usage();
    const putBack = take(path);
    // An unknown key may have been created just before the outage.
    await eventually("the loss is seen", () => logged(outages.keys[0]) > 0);
    expect(await times(20, outage.unknownKey)).toEqual(new Set([503]));
    expect(await times(50, outage.call)).toEqual(new Set([200]));
    await eventually("it is known", async () => (await outage.isReady()) === staysReady);
    expect(await outage.admin("GET", "/accounts")).toBe(away);
    expect(await createAccount(outage)).toBe(away);
    expect(await outage.admin("GET", "/sign-in")).toBe(away);
    expect(await outage.admin("GET", "/usage/totals")).toBe(away);
    await eventually("usage is known to wait", () => logged(outages.usage[0]) > 0);
    await Bun.sleep(1_500);
    expect(await times(20, outage.call)).toEqual(new Set([200]));
    expect(await times(20, outage.unknownKey)).toEqual(new Set([503]));
    putBack();
    const putBackAt = performance.now();
    await eventually("keys are read again", () => logged(outages.keys[1]) > 0);
    const afterMs = Math.round(performance.now() - putBackAt);
    process.stdout.write(`keys are read again ${afterMs} ms after the database is back\n`);
    await eventually("it is ready", outage.isReady);
    expect(await outage.unknownKey()).toBe(401);
    expect(await createAccount(outage)).toBe("201");
    await expectAllRows(outage);
    await eventually("last uses are stored", () => {
      const [failed, stored] = linesOf(outage, "lastUse");
      return failed === stored;
    });
    expect(linesOf(outage, "usage")).toEqual([1, 1]);
    expect(linesOf(outage, "keys")).toEqual([1, 1]);
    expect(linesOf(outage, "lastUse")[0]).toBeLessThanOrEqual(1);
    expect(logged("the database is available again")).toBe(1);
    // One line for each problem: the file is missing, and the one in its place cannot be opened.
    expect(logged("the database is unavailable")).toBeLessThanOrEqual(2);
  },
  60_000,
);

test("a missing database is not replaced by an empty one without keys", async () => {
  await using outage = await startOutageGateway();
  const putBack = removeFolder(outage.path);
  await eventually("the loss is seen", () => outage.logged(outages.keys[0]) > 0);
  expect(await createAccount(outage)).toBe(away);
  expect(existsSync(outage.path)).toBe(false);
  putBack();
  await eventually("keys are read again", () => outage.logged(outages.keys[1]) > 0);
  expect(await outage.call()).toBe(200);
}, 180_000);

test("known keys work for fifteen minutes of an outage, then get 503 until it ends", async () => {
  const clock = new ManualClock();
  await using outage = await startOutageGateway({ clock });
  expect(await outage.call()).toBe(200);
  await outage.gateway.usage();
  const putBack = spoilDatabase(outage.path);
  // SQLite does not look at the file before it needs a page of it.
  expect(await outage.call()).toBe(200);
  await eventually("the loss is seen", () => outage.logged(outages.keys[0]) > 0);
  const usage = await outage.gateway.get("/v1/usage");
  expect([usage.status, await usage.json()]).toMatchObject([200, { totals: null }]);
  clock.advance(14 * 60_000);
  expect(await outage.call()).toBe(200);
  clock.advance(2 * 60_000);
  expect(await times(5, outage.call)).toEqual(new Set([503]));
  expect(await times(5, outage.unknownKey)).toEqual(new Set([503]));
  putBack();
  clock.advance(1_000);
  await eventually("the key works again", async () => (await outage.call()) === 200);
  await expectAllRows(outage);
}, 180_000);
