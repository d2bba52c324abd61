import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { closeSync, copyFileSync, openSync, renameSync, statSync, writeSync } from "node:fs";
import { createKeyOf } from "../support/process-key.ts";
import { startServing, type ServingProcess } from "../support/sluice-process.ts";
import { eventually } from "./outage-gateway.ts";
import {
  askAdmin,
  callWith,
  makeProcessFolder,
  statusOf,
  type ProcessFolder,
} from "./outage-process.ts";

/** Damaged pages of the database, at the start and while it runs. */

interface FilledFolder extends ProcessFolder {
  readonly key: string;
  /** Calls in the database. */
  readonly rows: number;
  /** The end of the schema, the roots of all tables, and the few keys. */
  readonly rootPages: number;
}

const pageBytes = 4_096;
/** More than SQLite's cache, so that pages are read from the file. */
const copies = 30_000;

/** A database with one served call and many copies of it. */
async function makeFilledFolder(): Promise<FilledFolder> {
  const folder = makeProcessFolder();
  const key = await createKeyOf(folder.configPath);
  {
    await using serving = await startServing(["--config", folder.configPath]);
    expect(await callWith(serving, key)).toBe(200);
    serving.signal("SIGINT");
    expect(await serving.exited).toBe(0);
  }
  using database = new Database(folder.databasePath);
  const pages = database.query<{ page_count: number }, []>("PRAGMA page_count");
  const rootPages = pages.get()?.page_count ?? 0;
  const [first] = database.query<Record<string, string | null>, []>("SELECT * FROM usage").all();
  const columns = Object.keys(first ?? {}).filter((column) => column !== "sequence");
  const copied = columns.map((column) => (column === "id" ? `hex(randomblob(24))` : column));
  database.run(
    `WITH RECURSIVE many (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM many WHERE n < ${copies})
     INSERT INTO usage (${columns.join(", ")}) SELECT ${copied.join(", ")} FROM usage, many`,
  );
  database.run("PRAGMA wal_checkpoint(TRUNCATE)");
  const rows = copies + 1;
  return { ...folder, key, rows, rootPages, [Symbol.asyncDispose]: folder[Symbol.asyncDispose] };
}

/** Damages all pages of calls and their indexes, so that no row can be added. */
function damageCalls({ databasePath, rootPages }: FilledFolder): void {
  const from = rootPages * pageBytes;
  const nonsense = Buffer.alloc(statSync(databasePath).size - from, 0xa5);
  const file = openSync(databasePath, "r+");
  writeSync(file, nonsense, 0, nonsense.length, from);
  closeSync(file);
}

async function readinessOf({ dataUrl }: ServingProcess): Promise<string> {
  const response = await fetch(`${dataUrl}/readyz`);
  return `${response.status} ${(await response.text()).trim()}`;
}

const damaged = "503 the database is damaged: it has to be restored";

async function untilDamaged(serving: ServingProcess): Promise<void> {
  await eventually("the damage is seen", async () => (await readinessOf(serving)) === damaged);
  expect(await statusOf(`${serving.adminUrl}/readyz`)).toBe(503);
  expect(serving.text()).toContain('the database is unavailable what="is damaged"');
}

/** Restores in one step, as in docs/operations.md. */
function restore({ databasePath }: ProcessFolder, backup: string): void {
  copyFileSync(backup, `${databasePath}.restored`);
  renameSync(`${databasePath}.restored`, databasePath);
}

/** Checks that every call has one row and that there are no others. */
async function expectRows(
  serving: ServingProcess,
  folder: ProcessFolder,
  rows: number,
): Promise<void> {
  const since = "since=2000-01-01T00:00:00Z";
  let seen = 0;
  await eventually("all rows are there", async () => {
    const { status, body } = await askAdmin(serving, folder, `/usage/totals?${since}`);
    if (status !== 200) return false;
    seen = countOf(folder);
    return seen >= rows && body !== undefined;
  });
  expect(seen).toBe(rows);
}

function countOf({ databasePath }: ProcessFolder): number {
  using database = new Database(databasePath, { readonly: true });
  database.run("PRAGMA busy_timeout = 5000");
  return database.query<{ n: number }, []>("SELECT count(*) AS n FROM usage").get()?.n ?? 0;
}

test("damage at the start is logged, keys are served, and calls wait for the restored file", async () => {
  await using folder = await makeFilledFolder();
  const { databasePath, configPath, key, rows } = folder;
  const backup = `${databasePath}.backup`;
  copyFileSync(databasePath, backup);
  damageCalls(folder);
  const size = statSync(databasePath).size;
  await using serving = await startServing(["--config", configPath]);
  await untilDamaged(serving);
  for (let call = 0; call < 20; call += 1) expect(await callWith(serving, key)).toBe(200);
  expect((await askAdmin(serving, folder, "/keys")).status).toBe(503);
  // The damaged file is not written, so that it can be examined.
  expect(statSync(databasePath).size).toBe(size);
  restore(folder, backup);
  await eventually("it is ready", async () => (await readinessOf(serving)) === "200 ready");
  expect(await callWith(serving, key)).toBe(200);
  await expectRows(serving, folder, rows + 21);
}, 120_000);

test("damage while it runs stops all writing until the file is restored", async () => {
  await using folder = await makeFilledFolder();
  const { databasePath, configPath, key, rows } = folder;
  const backup = `${databasePath}.backup`;
  await using serving = await startServing(["--config", configPath]);
  expect(await callWith(serving, key)).toBe(200);
  await eventually("the call is stored", () => countOf(folder) === rows + 1);
  using copying = new Database(databasePath);
  copying.run(`VACUUM INTO '${backup}'`);
  copying.close();
  damageCalls(folder);
  // A write of another process invalidates SQLite's cache.
  await createKeyOf(configPath);
  expect(await callWith(serving, key)).toBe(200);
  await untilDamaged(serving);
  for (let call = 0; call < 20; call += 1) expect(await callWith(serving, key)).toBe(200);
  restore(folder, backup);
  await eventually("it is ready", async () => (await readinessOf(serving)) === "200 ready");
  await expectRows(serving, folder, rows + 22);
}, 120_000);
