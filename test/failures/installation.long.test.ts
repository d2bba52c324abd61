import { Database } from "bun:sqlite";
import { afterAll, describe, expect, test } from "bun:test";
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { createKeyOf } from "../support/process-key.ts";
import { runSluice, startServing, type ServingProcess } from "../support/sluice-process.ts";
import { eventually } from "./outage-gateway.ts";
import { callWith, makeProcessFolder, statusOf, type ProcessFolder } from "./outage-process.ts";

/** Starts without the database, the data directory or the pepper, which belong together. */

interface UsedFolder extends ProcessFolder {
  readonly key: string;
  readonly pepperPath: string;
  readonly spoolPath: string;
}

/** One of each pepper, which tests get copies of: to fill it takes a start of the gateway. */
const used = new Map<string | null, Promise<UsedFolder>>();

afterAll(async () => {
  for (const folder of used.values()) await (await folder)[Symbol.asyncDispose]();
});

/** After a run in which a call was served; its database has its rows. */
async function makeUsedFolder(pepper: string | null = null): Promise<UsedFolder> {
  const filling = used.get(pepper) ?? makeOtherFolder(pepper);
  used.set(pepper, filling);
  const filled = await filling;
  const folder = makeProcessFolder({ pepper });
  cpSync(filled.dataDir, folder.dataDir, { recursive: true });
  cpSync(dirname(filled.databasePath), dirname(folder.databasePath), { recursive: true });
  return withPaths(folder, filled.key);
}

/** As `makeUsedFolder`, of an installation that no other test has. */
async function makeOtherFolder(pepper: string | null = null): Promise<UsedFolder> {
  const folder = makeProcessFolder({ pepper });
  const key = await createKeyOf(folder.configPath);
  await serveOnce(folder, key);
  return withPaths(folder, key);
}

function withPaths(folder: ProcessFolder, key: string): UsedFolder {
  const pepperPath = join(folder.dataDir, "pepper");
  return { ...folder, key, pepperPath, spoolPath: join(folder.dataDir, "spool") };
}

async function serveOnce({ configPath }: ProcessFolder, key: string, status = 200): Promise<void> {
  await using serving = await startServing(["--config", configPath]);
  expect(await callWith(serving, key)).toBe(status);
  expect(await statusOf(`${serving.dataUrl}/readyz`)).toBe(200);
  await end(serving);
}

async function end(serving: ServingProcess): Promise<void> {
  serving.signal("SIGINT");
  expect(await serving.exited).toBe(0);
}

function removeDatabase({ databasePath }: ProcessFolder): void {
  for (const suffix of ["", "-wal", "-shm"]) rmSync(databasePath + suffix, { force: true });
}

function editConfig({ configPath }: ProcessFolder, from: string, to: string): void {
  const text = readFileSync(configPath, "utf8");
  expect(text).toContain(from);
  writeFileSync(configPath, text.replace(from, to));
}

const filesOf = (path: string): readonly string[] =>
  existsSync(path) ? readdirSync(path).toSorted() : [];

/** Checks that the start ends with one line of reason and remedy, and creates nothing. */
async function expectRefused(folder: ProcessFolder, reason: string): Promise<void> {
  const places = [folder.dataDir, join(folder.databasePath, "..")];
  const before = places.map(filesOf);
  const { exitCode, output, errors } = await runSluice(["serve", "--config", folder.configPath]);
  expect([exitCode, output]).toEqual([1, ""]);
  expect(errors.trimEnd().split("\n")).toHaveLength(1);
  expect(errors).toStartWith("cannot start: the database ");
  expect(errors).toContain(reason);
  expect(errors).toContain("estore");
  expect(errors).toContain("empty data_dir");
  const spoolLess = (names: readonly string[] | undefined): readonly string[] =>
    (names ?? []).filter((name) => name !== "spool");
  expect(places.map(filesOf).map(spoolLess)).toEqual(before.map(spoolLess));
}

describe("a start is refused", () => {
  test("when the database is missing, every time", async () => {
    await using folder = await makeUsedFolder();
    removeDatabase(folder);
    await expectRefused(folder, `the database ${folder.databasePath} is missing.`);
    await expectRefused(folder, `the database ${folder.databasePath} is missing.`);
    const offline = await runSluice(["accounts", "list", "--offline", "-c", folder.configPath]);
    expect(offline.exitCode).toBe(1);
    expect(offline.errors).toStartWith(`the database ${folder.databasePath} is missing.`);
    expect(existsSync(folder.databasePath)).toBe(false);
  }, 180_000);

  test.each([
    ["of 0 bytes", (path: string) => writeFileSync(path, "")],
    ["without a table", (path: string) => new Database(path, { create: true }).run("VACUUM")],
  ])(
    "when the database is one %s",
    async (_, make) => {
      await using folder = await makeUsedFolder();
      removeDatabase(folder);
      make(folder.databasePath);
      await expectRefused(folder, `the database ${folder.databasePath} is empty.`);
      await expectRefused(folder, `the database ${folder.databasePath} is empty.`);
    },
    60_000,
  );

  test("when storage.url names another place by mistake", async () => {
    await using folder = await makeUsedFolder();
    editConfig(folder, "sluice.db", "slucie.db");
    await expectRefused(folder, "slucie.db is missing.");
  }, 180_000);

  test("when the database belongs to another installation", async () => {
    await using folder = await makeUsedFolder();
    await using other = await makeOtherFolder();
    removeDatabase(folder);
    copyFileSync(other.databasePath, folder.databasePath);
    await expectRefused(folder, "belongs to another installation.");
  }, 180_000);

  test("when the pepper is missing, and no new one is made", async () => {
    await using folder = await makeUsedFolder();
    renameSync(folder.pepperPath, `${folder.pepperPath}.away`);
    await expectRefused(folder, `${folder.pepperPath} is missing`);
    expect(existsSync(folder.pepperPath)).toBe(false);
    renameSync(`${folder.pepperPath}.away`, folder.pepperPath);
    await serveOnce(folder, folder.key);
  }, 180_000);

  test("when the file has another pepper", async () => {
    await using folder = await makeUsedFolder();
    await using other = await makeOtherFolder();
    copyFileSync(other.pepperPath, folder.pepperPath);
    await expectRefused(folder, `another pepper than that of ${folder.pepperPath}`);
  }, 180_000);

  test("when the configuration has another pepper", async () => {
    await using folder = await makeUsedFolder("a pepper for tests that is long enough");
    editConfig(folder, "a pepper for tests", "one pepper for tests");
    await expectRefused(folder, "another pepper than that of auth.pepper");
  }, 180_000);
});

describe("a start is not refused", () => {
  test("the first time, the second time, and after everything was removed", async () => {
    await using folder = makeProcessFolder({ pepper: null });
    const start = async (): Promise<void> => {
      await using serving = await startServing(["--config", folder.configPath]);
      expect(await statusOf(`${serving.dataUrl}/readyz`)).toBe(200);
      await end(serving);
    };
    await start();
    await start();
    removeDatabase(folder);
    rmSync(folder.dataDir, { recursive: true });
    await start();
  }, 180_000);

  test("when commands created the first account before", async () => {
    await using folder = makeProcessFolder({ pepper: null });
    const config = ["--offline", "-c", folder.configPath];
    expect((await runSluice(["accounts", "create", "search", ...config])).exitCode).toBe(0);
    expect((await runSluice(["accounts", "create", "chat", ...config])).exitCode).toBe(0);
    await using serving = await startServing(["--config", folder.configPath]);
    expect(await statusOf(`${serving.dataUrl}/readyz`)).toBe(200);
  }, 180_000);

  test("when the database is an older copy of the same installation", async () => {
    await using folder = await makeUsedFolder();
    const { databasePath } = folder;
    using database = new Database(databasePath);
    database.run(`VACUUM INTO '${databasePath}.backup'`);
    database.close();
    const later = await createKeyOf(folder.configPath);
    await serveOnce(folder, later);
    removeDatabase(folder);
    renameSync(`${databasePath}.backup`, databasePath);
    await serveOnce(folder, folder.key);
    await serveOnce(folder, later, 401);
  }, 180_000);

  test("when the data directory is lost but the pepper is there", async () => {
    await using folder = await makeUsedFolder();
    const pepper = readFileSync(folder.pepperPath);
    rmSync(folder.dataDir, { recursive: true });
    await expectRefused(folder, `${folder.pepperPath} is missing`);
    mkdirSync(folder.dataDir, { recursive: true });
    writeFileSync(folder.pepperPath, pepper);
    await serveOnce(folder, folder.key);
    removeDatabase(folder);
    await expectRefused(folder, "is missing.");
  }, 180_000);
});

test("a process that crashed creates nothing: it waits for the lost files", async () => {
  await using folder = await makeUsedFolder();
  await using serving = await startServing(["--config", folder.configPath]);
  const key = await createKeyOf(folder.configPath);
  await eventually("the key works", async () => (await callWith(serving, key)) === 200);
  const { databasePath } = folder;
  const away = `${databasePath}.away`;
  process.kill(serving.processPid, "SIGKILL");
  for (const end of ["", "-wal", "-shm"]) {
    if (existsSync(databasePath + end)) renameSync(databasePath + end, away + end);
  }
  await eventually("a successor refuses", () => serving.text().includes("is missing."));
  expect(existsSync(databasePath)).toBe(false);
  for (const end of ["-wal", "-shm", ""]) {
    if (existsSync(away + end)) renameSync(away + end, databasePath + end);
  }
  await eventually("a successor is ready", async () => {
    return (await fetch(`${serving.adminUrl}/readyz`).catch(() => undefined))?.status === 200;
  });
  expect(await callWith(serving, key)).toBe(200);
}, 180_000);

test("an empty file in place of the database is not used while the gateway runs", async () => {
  await using folder = await makeUsedFolder();
  await using serving = await startServing(["--config", folder.configPath]);
  const { databasePath } = folder;
  renameSync(databasePath, `${databasePath}.away`);
  writeFileSync(databasePath, "");
  const ready = `${serving.dataUrl}/readyz`;
  await eventually("it is not ready", async () => (await statusOf(ready)) === 503);
  expect(await (await fetch(ready)).text()).toContain("the database is empty now");
  expect(await callWith(serving, folder.key)).toBe(200);
  expect(statSync(databasePath).size).toBe(0);
  renameSync(`${databasePath}.away`, databasePath);
  await eventually("it is ready", async () => (await statusOf(ready)) === 200);
  expect(await callWith(serving, folder.key)).toBe(200);
}, 180_000);
