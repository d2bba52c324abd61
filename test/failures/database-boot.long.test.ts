import { Database } from "bun:sqlite";
import { copyFileSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { expect, test } from "bun:test";
import { createKeyOf } from "../support/process-key.ts";
import { runSluice, startServing, type ServingProcess } from "../support/sluice-process.ts";
import { generateApiKey } from "../../src/domain/keys/api-key.ts";
import { holdDatabase } from "./database-holder.ts";
import { eventually } from "./outage-gateway.ts";
import {
  askAdmin,
  callWith,
  makeProcessFolder,
  statusOf,
  type ProcessFolder,
} from "./outage-process.ts";

function countOf(process: ServingProcess, message: string): number {
  return process.text().split(message).length - 1;
}

const unknownKey = (): string => generateApiKey((target) => crypto.getRandomValues(target)).text;

/** The answer of a process without keys, which must not make a program discard its key. */
async function expectUnready(
  serving: ServingProcess,
  folder: ProcessFolder,
  key: string,
): Promise<void> {
  const { dataUrl, adminUrl } = serving;
  expect(await statusOf(`${dataUrl}/healthz`)).toBe(200);
  expect(await statusOf(`${dataUrl}/readyz`)).toBe(503);
  expect(await statusOf(`${adminUrl}/readyz`)).toBe(503);
  for (const url of [dataUrl, adminUrl]) {
    const readiness = await (await fetch(`${url}/readyz`)).text();
    expect(readiness).toMatch(/not loaded yet: the database does not answer|has to be restored/);
  }
  expect(await callWith(serving, key)).toBe(503);
  expect(await callWith(serving, unknownKey())).toBe(503);
  expect(await callWith(serving, "sk-slc_nonsense")).toBe(401);
  for (const path of ["/accounts", "/keys", "/usage/totals", "/sign-in"]) {
    const { status, body } = await askAdmin(serving, folder, path);
    expect([path, status]).toEqual([path, 503]);
    expect(body).toMatchObject({ error: { code: "storage_unavailable" } });
  }
}

async function expectReady(
  serving: ServingProcess,
  folder: ProcessFolder,
  key: string,
): Promise<void> {
  const { dataUrl, adminUrl } = serving;
  const beganAt = performance.now();
  await eventually("it is ready", async () => (await statusOf(`${dataUrl}/readyz`)) === 200);
  process.stdout.write(`ready ${Math.round(performance.now() - beganAt)} ms after the mending\n`);
  await eventually(
    "the admin listener is ready",
    async () => (await statusOf(`${adminUrl}/readyz`)) === 200,
  );
  expect(await callWith(serving, key)).toBe(200);
  expect(await callWith(serving, unknownKey())).toBe(401);
  await eventually("the call is in the ledger", async () => {
    const { status, body } = await askAdmin(serving, folder, "/usage/calls");
    return status === 200 && (body as { data: unknown[] }).data.length === 1;
  });
  expect(countOf(serving, "keys cannot be read")).toBe(1);
  expect(countOf(serving, "keys can be read again")).toBe(1);
  expect(countOf(serving, "the database is unavailable")).toBe(1);
  // Nobody has signed up yet, so the token that the outage held back is printed now.
  await eventually("the first operator can come", () => serving.text().includes("one-time token"));
  expect(countOf(serving, "one-time token")).toBe(1);
}

test("a start while another process locks the database waits unready, then serves", async () => {
  await using folder = makeProcessFolder();
  const key = await createKeyOf(folder.configPath);
  await using holder = await holdDatabase(folder.databasePath, "everything");
  await using serving = await startServing(["--config", folder.configPath]);
  await expectUnready(serving, folder, key);
  await Bun.sleep(1_500);
  await expectUnready(serving, folder, key);
  await holder.release();
  await expectReady(serving, folder, key);
}, 180_000);

test("a start on a file that is no database waits unready for the real one", async () => {
  await using folder = makeProcessFolder();
  const key = await createKeyOf(folder.configPath);
  const { databasePath: path } = folder;
  copyFileSync(path, `${path}.kept`);
  for (const end of ["-wal", "-shm"]) rmSync(path + end, { force: true });
  writeFileSync(path, Buffer.alloc(100_000, "this is no database "));
  await using serving = await startServing(["--config", folder.configPath]);
  await expectUnready(serving, folder, key);
  expect(serving.text()).toContain("is not a database");
  renameSync(`${path}.kept`, path);
  await expectReady(serving, folder, key);
}, 180_000);

test("a start on a database of another version ends with one sentence and exit code 1", async () => {
  await using folder = makeProcessFolder();
  const database = new Database(folder.databasePath, { create: true });
  database.run("PRAGMA user_version = 999");
  database.close();
  const { exitCode, output, errors } = await runSluice(["serve", "--config", folder.configPath]);
  expect([exitCode, output]).toEqual([1, ""]);
  expect(errors.trimEnd()).toMatch(
    /^cannot start: the database .* has the schema 999, and this version of Sluice works with/,
  );
  expect(errors.trimEnd().split("\n")).toHaveLength(1);
}, 180_000);

test("a start on a folder as the database ends with one sentence and exit code 1", async () => {
  await using folder = makeProcessFolder();
  mkdirSync(folder.databasePath);
  const { exitCode, output, errors } = await runSluice(["serve", "--config", folder.configPath]);
  expect([exitCode, output]).toEqual([1, ""]);
  expect(errors.trimEnd().split("\n")).toEqual([
    `cannot start: storage.url leads to ${folder.databasePath}, which is a folder; it must be a file`,
  ]);
}, 180_000);
