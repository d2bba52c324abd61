import { mkdtempSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "bun:test";
import { budgetOf } from "../../../test/contracts/budget-contract.ts";
import { AdminFixture } from "../../../test/support/admin-fixture.ts";
import { testPeppers } from "../../../test/support/test-peppers.ts";
import { StorageUnavailable, WrongDatabase } from "../errors.ts";
import type { KeyStore } from "../store.ts";
import { KeyFile } from "./key-file.ts";

const maxAgeMs = 900_000;

let admin: AdminFixture;
let folder: string;
let path: string;
const failures: unknown[] = [];

beforeEach(() => {
  admin = new AdminFixture();
  folder = mkdtempSync(join(tmpdir(), "sluice-keys-"));
  path = join(folder, "keys");
  failures.length = 0;
});

afterEach(async () => {
  rmSync(folder, { recursive: true, force: true });
  await admin[Symbol.asyncDispose]();
});

function keyFile(
  store: Pick<KeyStore, "loadKeys"> = admin.stores.keys,
  peppers = testPeppers(),
): KeyFile {
  return new KeyFile({
    path,
    store,
    clock: admin.clock,
    peppers,
    maxAgeMs,
    onFailed: (error) => void failures.push(error),
    onWritten: () => undefined,
  });
}

/** A database that cannot be reached. */
const away: Pick<KeyStore, "loadKeys"> = {
  loadKeys: () => Promise.reject(new StorageUnavailable("away")),
};

function known(store = away, peppers = testPeppers()): KeyFile {
  return keyFile(store, peppers);
}

/** Ids of the keys on disk that may be used. */
async function onDisk(keys = known()): Promise<readonly string[]> {
  const live = new Set<string>();
  let epoch = 0;
  for (let hasMore = true; hasMore;) {
    const page = await keys.loadKeys(epoch, 500);
    ({ epoch, hasMore } = page);
    for (const { keyId, live: isLive } of page.changes) {
      if (isLive === undefined) live.delete(keyId);
      else live.add(keyId);
    }
  }
  return [...live];
}

async function epoch(): Promise<number> {
  return (await admin.stores.keys.loadKeys(0, 500)).epoch;
}

async function issue(): Promise<string> {
  const { id } = await admin.application("owner");
  const { key } = await admin.issue(id, { note: "a note for people" });
  return key.id;
}

test("keys and later revocations are on disk, without what only people read", async () => {
  const [first, second] = [await issue(), await issue()];
  const file = keyFile();
  await file.follow(await epoch());
  expect(await onDisk()).toEqual([first, second]);
  await admin.result("revokeKey", { id: first });
  await file.follow(await epoch());
  const third = await issue();
  await file.follow(await epoch());
  expect(await onDisk()).toEqual([second, third]);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(readFileSync(path, "utf8")).not.toContain("a note for people");
  expect(failures).toEqual([]);
});

test("what is read is what the database had, with its age", async () => {
  await issue();
  await keyFile().follow(await epoch());
  const { changes, epoch: last } = await admin.stores.keys.loadKeys(0, 500);
  admin.clock.advance(60_000);
  const page = await known().loadKeys(0, 500);
  expect(page).toMatchObject({ epoch: last, hasMore: false, ageMs: 60_000 });
  const [read] = page.changes;
  expect(read?.live?.secrets).toEqual(changes[0]?.live?.secrets ?? []);
  expect(read?.live?.key.plan).toBe("standard");
  expect(known().loadKeys(last, 500)).rejects.toThrow("away");
});

test("budgets that refuse are on disk as the database had them", async () => {
  const { accountId } = await admin.application("owner");
  await issue();
  const more = { timeZone: "Asia/Kathmandu", period: "week", model: "alpha-sonnet-4" } as const;
  await admin.stores.control.change(async ({ budgets }) => {
    await budgets.insert(budgetOf("bgt_a", { accountId, note: "a note for people", ...more }));
    await budgets.insert(budgetOf("bgt_b", { accountId, mode: "warn" }));
  });
  await keyFile().follow(await epoch());
  const { changes } = await admin.stores.keys.loadKeys(0, 500);
  const read = (await known().loadKeys(0, 500)).changes[0]?.live?.budgets;
  expect(read).toEqual([...(changes[0]?.live?.budgets ?? [])]);
  expect(read).toMatchObject([{ id: "bgt_a", ...more }]);
  expect(readFileSync(path, "utf8")).not.toContain("a note for people");
});

test("a file without changes stays young while the database can be read", async () => {
  await issue();
  const file = keyFile();
  await file.follow(await epoch());
  admin.clock.advance(600_000);
  await file.follow(await epoch());
  admin.clock.advance(600_000);
  expect(await onDisk()).toHaveLength(1);
  admin.clock.advance(300_001);
  expect(onDisk()).rejects.toThrow("away");
});

test("a line that is incomplete or changed ends the file, as does one under another pepper", async () => {
  const first = await issue();
  const file = keyFile();
  await file.follow(await epoch());
  const whole = statSync(path).size;
  await issue();
  await file.follow(await epoch());
  truncateSync(path, statSync(path).size - 1);
  const text = readFileSync(path, "utf8");
  expect(await onDisk()).toHaveLength(2);
  truncateSync(path, statSync(path).size - 10);
  expect(await onDisk()).toEqual([first]);
  expect(statSync(path).size).toBeGreaterThan(whole);
  writeFileSync(path, text.replace('"standard"', '"enterprise"'));
  expect(onDisk()).rejects.toThrow("away");
  writeFileSync(path, text);
  expect(onDisk(known(away, testPeppers("another")))).rejects.toThrow("away");
  expect(await onDisk(known(away, testPeppers("next", "test")))).toHaveLength(2);
});

test("the wrong database is not helped out", async () => {
  await issue();
  await keyFile().follow(await epoch());
  const wrong = { loadKeys: () => Promise.reject(new WrongDatabase("x", "is another", "")) };
  expect(onDisk(known(wrong))).rejects.toBeInstanceOf(WrongDatabase);
});

test("a database that went back is written anew, and so is a file after a failure", async () => {
  await issue();
  const file = keyFile();
  await file.follow(await epoch());
  rmSync(folder, { recursive: true });
  admin.clock.advance(60_000);
  await file.follow(await epoch());
  expect(failures).toHaveLength(1);
  folder = mkdtempSync(join(tmpdir(), "sluice-keys-"));
  path = join(folder, "keys");
  const other = keyFile();
  await other.follow(await epoch());
  await admin.stores.connection.use((database) => database.run("UPDATE epochs SET value = 0"));
  await admin.stores.connection.use((database) =>
    database.run("UPDATE keys SET changed_epoch = 0"),
  );
  await other.follow(0);
  expect(await onDisk()).toEqual([]);
});
