import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { schemaVersion } from "../../src/store/repositories/schema.ts";
import { copyOfThis, type OtherProgram } from "../support/program-copy.ts";
import { until } from "../support/ledger-truth-process.ts";
import { describeWithPostgres } from "../support/postgres-databases.ts";
import { createKeyOf } from "../support/process-key.ts";
import { runSluice, startServing, type ServingProcess } from "../support/sluice-process.ts";
import { callWith, makeProcessFolder, statusOf, type ProcessFolder } from "./outage-process.ts";

/** Restarts that would fail by what a start checks, and a gateway whose control thread cannot start. */

let folder: ProcessFolder;
let program: OtherProgram;
let serving: ServingProcess;
let key: string;

async function serve(storageUrl?: string): Promise<void> {
  program = await copyOfThis();
  folder = makeProcessFolder(storageUrl === undefined ? {} : { storageUrl });
  key = await createKeyOf(folder.configPath);
  serving = await startServing(["--config", folder.configPath], {}, program.command);
}

async function end(): Promise<void> {
  await serving[Symbol.asyncDispose]();
  await folder[Symbol.asyncDispose]();
  program[Symbol.dispose]();
}

function edit(path: string, from: string, to: string): void {
  const text = readFileSync(path, "utf8");
  expect(text).toContain(from);
  writeFileSync(path, text.replace(from, to));
}

const pids = (): readonly number[] => [serving.processPid];

function run(...commandLine: readonly string[]) {
  return runSluice([...commandLine, "--config", folder.configPath], {}, program.command);
}

async function restart(): Promise<readonly [number, string]> {
  const { exitCode, errors } = await run("restart");
  return [exitCode, errors];
}

/** Checks that the command says why, and that everything goes on as it was. */
async function expectRefused(reason: string): Promise<void> {
  const before = pids();
  const [exitCode, errors] = await restart();
  expect(errors).toStartWith("not restarted: the new process ended before it served: ");
  expect(errors).toContain(reason);
  expect([exitCode, pids()]).toEqual([1, before]);
  expect(await statusOf(`${serving.adminUrl}/metrics`)).toBe(200);
  expect(await callWith(serving, key)).toBe(200);
  expect((await run("status")).exitCode).toBe(0);
}

describe("with a database in a file", () => {
  beforeEach(() => serve());
  afterEach(end);

  test("a restart of a program with another schema is refused", async () => {
    const path = join(program.folder, "src/store/repositories/schema.ts");
    edit(path, `schemaVersion = ${schemaVersion};`, `schemaVersion = ${schemaVersion + 1};`);
    await expectRefused(`has the schema ${schemaVersion}, and this version of Sluice works with`);
    using database = new Database(folder.databasePath, { readonly: true });
    expect(database.query("PRAGMA user_version").get()).toEqual({ user_version: schemaVersion });
  }, 180_000);

  test("a restart with another pepper or another installation's database is refused", async () => {
    const pepper = "a pepper for tests that is long enough";
    edit(folder.configPath, pepper, `another ${pepper}`);
    await expectRefused("was used with another pepper than that of auth.peppers");
    edit(folder.configPath, `another ${pepper}`, pepper);
    const other = `${folder.databasePath}-other`;
    {
      using database = new Database(folder.databasePath, { readonly: true });
      writeFileSync(other, database.serialize());
      using copy = new Database(other);
      copy.run("UPDATE installation SET id = 'inst_other'");
    }
    edit(folder.configPath, folder.databasePath, other);
    await expectRefused("belongs to another installation");
  }, 180_000);
});

describeWithPostgres((databases) => {
  test("a restart while the database is away succeeds, as a start does", async () => {
    const { server } = databases;
    await serve(await server.createDatabase());
    try {
      await until("the key is known", async () => (await callWith(serving, key)) === 200);
      await until("the keys are kept", () => existsSync(join(folder.dataDir, "keys")));
      const before = pids();
      await server.kill();
      expect(await restart()).toEqual([0, "restarted\n"]);
      expect(pids().some((pid) => before.includes(pid))).toBe(false);
      expect(await callWith(serving, key)).toBe(200);
      await server.start();
      edit(folder.configPath, "a pepper for", "another pepper for");
      await expectRefused("was used with another pepper");
    } finally {
      await end();
    }
  }, 180_000);
});
