import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { askAdmin, callWith } from "../failures/outage-process.ts";
import { eventually } from "../failures/outage-gateway.ts";
import { createKeyOf } from "../support/process-key.ts";
import { runSluice, startServing, type ServingProcess } from "../support/sluice-process.ts";
import { BackupFolders, rowsOf } from "./backup-folders.ts";

const longMs = 120_000;

async function end(serving: ServingProcess): Promise<void> {
  serving.signal("SIGINT");
  expect(await serving.exited).toBe(0);
}

/** Calls until it is told to stop; ids of calls whose answers were read. */
class Load {
  readonly answered: string[] = [];
  #isOn = true;
  readonly #loops: readonly Promise<void>[];

  constructor({ dataUrl }: ServingProcess, key: string) {
    this.#loops = Array.from({ length: 4 }, () => this.#call(`${dataUrl}/v1/embeddings`, key));
  }

  async stop(): Promise<void> {
    this.#isOn = false;
    await Promise.all(this.#loops);
  }

  async #call(url: string, key: string): Promise<void> {
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    const body = JSON.stringify({ model: "embed-text-v2", input: "some words" });
    while (this.#isOn) {
      const answer = await fetch(url, { method: "POST", headers, body });
      await answer.text();
      expect(answer.status).toBe(200);
      this.answered.push(answer.headers.get("x-request-id") ?? "");
    }
  }
}

test(
  "a backup under load has the keys and rows of one moment; a restore has them, too",
  async () => {
    await using folders = await BackupFolders.create();
    const { source, target, key } = folders;
    const serving = await startServing(["--config", source.configPath]);
    const load = new Load(serving, key);
    await eventually("calls were stored", () => rowsOf(source).size > 100);
    const stored = [...rowsOf(source).keys()];
    const made = await folders.makeBackup();
    const asked = load.answered.length;
    expect([made.errors, made.exitCode]).toEqual(["", 0]);
    await eventually("more calls were answered", () => load.answered.length > asked + 200);
    await load.stop();
    await end(serving);
    // Calls that were running while the answer of the command came may be of either.
    const later = load.answered.slice(asked + 8);

    const restored = await folders.restore();
    expect([restored.errors, restored.exitCode]).toEqual(["", 0]);
    const [all, rows] = [rowsOf(source), rowsOf(target)];
    for (const id of stored) expect(rows.has(id), id).toBe(true);
    for (const id of later) expect(rows.has(id), id).toBe(false);
    for (const [id, row] of rows) expect(row).toEqual(all.get(id) ?? row);

    const again = await startServing(["--config", target.configPath]);
    expect(await callWith(again, key)).toBe(200);
    const { body } = await askAdmin(again, target, "/usage/totals?since=1970-01-01T00:00:00Z");
    await end(again);
    const totals = z.object({ data: z.array(z.object({ calls: z.number() })) }).parse(body);
    const counted = totals.data.reduce((sum, { calls }) => sum + calls, 0);
    expect([rows.size, rows.size + 1]).toContain(counted);
  },
  longMs,
);

test(
  "a copy of only the database's file lacks what is in the write-ahead log; a backup has it",
  async () => {
    await using folders = await BackupFolders.create();
    const { source } = folders;
    const serving = await startServing(["--config", source.configPath]);
    await createKeyOf(source.configPath);
    const file = join(folders.path, "file.db");
    copyFileSync(source.databasePath, file);
    expect((await folders.makeBackup()).exitCode).toBe(0);
    const countKeys = (path: string): number => {
      using database = new Database(path);
      return database.query("SELECT id FROM keys").all().length;
    };
    expect(countKeys(join(folders.backup, "sluice.db"))).toBe(2);
    expect(countKeys(file)).toBe(1);
    await end(serving);
  },
  longMs,
);

test(
  "a restore overwrites nothing, and leaves what is the same",
  async () => {
    await using folders = await BackupFolders.create();
    const { source, key } = folders;
    expect((await folders.makeBackup()).exitCode).toBe(0);
    const later = await createKeyOf(source.configPath);
    const back = ["restore", folders.backup, "--config", source.configPath];
    expect((await runSluice(back)).errors).toContain(`there is ${source.databasePath}`);
    renameSync(source.databasePath, `${source.databasePath}.away`);
    for (const end of ["-wal", "-shm"]) rmSync(source.databasePath + end, { force: true });

    const pepper = join(source.dataDir, "pepper");
    renameSync(pepper, `${pepper}.away`);
    writeFileSync(pepper, "a pepper of another installation, long enough\n");
    expect((await runSluice(back)).errors).toContain(`there is another ${pepper}`);
    renameSync(`${pepper}.away`, pepper);

    const restored = await runSluice(back);
    expect([restored.errors, restored.exitCode]).toEqual(["", 0]);
    const serving = await startServing(["--config", source.configPath]);
    expect(await callWith(serving, key)).toBe(200);
    expect(await callWith(serving, later)).toBe(401);
    await end(serving);
  },
  longMs,
);

test(
  "a restore is refused for a backup without its database, of another schema, or with another pepper",
  async () => {
    await using folders = await BackupFolders.create();
    expect((await folders.makeBackup()).exitCode).toBe(0);
    const refusalOf = async (change: (backup: string) => void): Promise<string> => {
      const copy = join(folders.path, "changed");
      cpSync(folders.backup, copy, { recursive: true });
      change(copy);
      const { configPath, databasePath } = folders.target;
      const { exitCode, errors } = await runSluice(["restore", copy, "--config", configPath]);
      expect([exitCode, existsSync(databasePath)]).toEqual([1, false]);
      rmSync(copy, { recursive: true });
      return errors;
    };
    expect(await refusalOf((copy) => rmSync(join(copy, "sluice.db")))).toContain("there is no ");
    const pepper = "a pepper of another installation, long enough\n";
    expect(await refusalOf((copy) => writeFileSync(join(copy, "pepper"), pepper))).toContain(
      "need another pepper",
    );
    const other = await refusalOf((copy) => {
      using database = new Database(join(copy, "sluice.db"));
      database.run("PRAGMA user_version = 999");
    });
    expect(other).toContain("has the schema 999");
    const garbage = Buffer.alloc(8_192, 0xff);
    expect(await refusalOf((copy) => writeFileSync(join(copy, "sluice.db"), garbage))).toContain(
      "cannot be opened",
    );
  },
  longMs,
);

test(
  "a configured pepper is not in the backup, and has to be the same where it is restored",
  async () => {
    await using folders = await BackupFolders.create("a configured pepper that is long enough");
    const made = await folders.makeBackup();
    expect(made.exitCode).toBe(0);
    expect(made.errors).toContain("auth.peppers");
    expect(existsSync(join(folders.backup, "pepper"))).toBe(false);
    const { configPath } = folders.target;
    const text = readFileSync(configPath, "utf8");
    writeFileSync(configPath, text.replace("a configured pepper", "another pepper"));
    expect((await folders.restore()).errors).toContain(
      "need another pepper than that of auth.peppers",
    );
    writeFileSync(configPath, text.replace(/^auth: .*$/m, ""));
    expect((await folders.restore()).errors).toContain("the backup has no pepper");
    writeFileSync(configPath, text);
    expect((await folders.restore()).exitCode).toBe(0);
  },
  longMs,
);

test(
  "a backup is not made over another one, nor of data that does not belong together",
  async () => {
    await using folders = await BackupFolders.create();
    mkdirSync(folders.backup);
    expect((await folders.makeBackup()).errors).toContain("exists");
    rmSync(folders.backup, { recursive: true });
    rmSync(join(folders.source.dataDir, "pepper"));
    const { exitCode, errors } = await folders.makeBackup();
    expect(exitCode).toBe(1);
    expect(errors).toContain("was used with a pepper that is gone");
    expect(existsSync(folders.backup)).toBe(false);
    expect(existsSync(`${folders.backup}.incomplete`)).toBe(false);
  },
  longMs,
);
