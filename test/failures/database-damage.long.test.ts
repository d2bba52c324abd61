import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import {
  closeSync,
  copyFileSync,
  existsSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeSync,
} from "node:fs";
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

/** Pages of the database that are not what they were: at the start, and while it runs. */

interface FilledFolder extends ProcessFolder {
  readonly key: string;
  /** Calls in the database. */
  readonly rows: number;
  /** Up to there lie the schema, the roots of all tables, and the few keys. */
  readonly rootPages: number;
}

const pageBytes = 4_096;
/** More than SQLite keeps in memory, so that pages are read from the file. */
const copies = 30_000;

/** With one call that was served, and many copies of it. */
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
  const columns = Object.keys(first ?? {});
  const copied = columns.map((column) => (column === "id" ? `hex(randomblob(24))` : column));
  database.run(
    `WITH RECURSIVE many (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM many WHERE n < ${copies})
     INSERT INTO usage (${columns.join(", ")}) SELECT ${copied.join(", ")} FROM usage, many`,
  );
  database.run("PRAGMA wal_checkpoint(TRUNCATE)");
  const rows = copies + 1;
  return { ...folder, key, rows, rootPages, [Symbol.asyncDispose]: folder[Symbol.asyncDispose] };
}

/** All pages of calls and of their indexes: no row can be added without meeting one. */
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

/** In one step, as docs/operations.md says. */
function restore({ databasePath }: ProcessFolder, backup: string): void {
  copyFileSync(backup, `${databasePath}.restored`);
  renameSync(`${databasePath}.restored`, databasePath);
}

/** Every call has one row, and no other is there. */
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

test("damage that is there at the start is said, keys are served, and calls wait for the restored file", async () => {
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
  // Nothing is written to what somebody may want to look into.
  expect(statSync(databasePath).size).toBe(size);
  restore(folder, backup);
  await eventually("it is ready", async () => (await readinessOf(serving)) === "200 ready");
  expect(await callWith(serving, key)).toBe(200);
  await expectRows(serving, folder, rows + 21);
}, 120_000);

test("a file that was cut off is said at the start, not replaced by a new one, and served once restored", async () => {
  await using folder = await makeFilledFolder();
  const { databasePath, dataDir, configPath, key, rows } = folder;
  const backup = `${databasePath}.backup`;
  copyFileSync(databasePath, backup);
  truncateSync(databasePath, Math.floor(statSync(databasePath).size / 2));
  // A directory that knows of no database would have one made.
  rmSync(dataDir, { recursive: true });
  await using serving = await startServing(["--config", configPath]);
  await untilDamaged(serving);
  for (const end of ["", "-wal", "-shm"]) rmSync(databasePath + end, { force: true });
  await Bun.sleep(2_000);
  expect(existsSync(databasePath)).toBe(false);
  expect(await statusOf(`${serving.dataUrl}/readyz`)).toBe(503);
  // Nobody is told that a key is bad.
  expect(await callWith(serving, key)).toBe(503);
  restore(folder, backup);
  await eventually("it is ready", async () => (await readinessOf(serving)) === "200 ready");
  expect(await callWith(serving, key)).toBe(200);
  await expectRows(serving, folder, rows + 1);
}, 120_000);

test("damage that comes while it runs stops all writing until the file is restored", async () => {
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
  // What another process writes makes SQLite read again what it had in memory.
  await createKeyOf(configPath);
  expect(await callWith(serving, key)).toBe(200);
  await untilDamaged(serving);
  for (let call = 0; call < 20; call += 1) expect(await callWith(serving, key)).toBe(200);
  restore(folder, backup);
  await eventually("it is ready", async () => (await readinessOf(serving)) === "200 ready");
  await expectRows(serving, folder, rows + 22);
}, 120_000);

test("a restored file that is damaged as well is not used, and the next one is", async () => {
  await using folder = await makeFilledFolder();
  const { databasePath, configPath, key, rows } = folder;
  const backup = `${databasePath}.backup`;
  copyFileSync(databasePath, backup);
  damageCalls(folder);
  const bad = `${databasePath}.bad`;
  copyFileSync(databasePath, bad);
  await using serving = await startServing(["--config", configPath]);
  await untilDamaged(serving);
  expect(await callWith(serving, key)).toBe(200);
  restore(folder, bad);
  await Bun.sleep(2_000);
  expect(await readinessOf(serving)).toBe(damaged);
  restore(folder, backup);
  await eventually("it is ready", async () => (await readinessOf(serving)) === "200 ready");
  await expectRows(serving, folder, rows + 1);
  rmSync(bad);
}, 120_000);
