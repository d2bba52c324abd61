import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  appendFileSync,
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
import { lockDatabase } from "../support/lock-database.ts";
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
  "a backup under load has every call that had ended, once, and the keys; a restore has them, too",
  async () => {
    await using folders = await BackupFolders.create();
    const { source, target, key } = folders;
    const serving = await startServing(["--config", source.configPath]);
    const load = new Load(serving, key);
    await eventually("calls were answered", () => load.answered.length > 200);
    const ended = [...load.answered];
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
    const again = await startServing(["--config", target.configPath]);
    expect(await callWith(again, key)).toBe(200);
    await eventually("the spool is stored", async () => {
      const page = await (await fetch(`${again.adminUrl}/metrics`)).text();
      return /^sluice_ledger_queue_rows 0$/m.test(page);
    });
    const { body } = await askAdmin(again, target, "/usage/totals?since=1970-01-01T00:00:00Z");
    await end(again);

    const [all, rows] = [rowsOf(source), rowsOf(target)];
    for (const id of ended) expect(rows.get(id), id).toEqual(all.get(id));
    for (const id of later) expect(rows.has(id), id).toBe(false);
    const own = [...rows.values()].filter(({ id }) => !all.has(id));
    expect(own).toHaveLength(1);
    for (const row of rows.values()) {
      if (row === own[0] || row.outcome === "interrupted") continue;
      expect(row).toEqual(all.get(row.id) ?? row);
    }
    const totals = z.object({ data: z.array(z.object({ calls: z.number() })) }).parse(body);
    expect(totals.data.reduce((sum, { calls }) => sum + calls, 0)).toBe(rows.size);
  },
  longMs,
);

test(
  "a call that waits in the spool is in the backup, and stored after the restore",
  async () => {
    await using folders = await BackupFolders.create();
    const { source, target, key } = folders;
    const serving = await startServing(["--config", source.configPath]);
    const lock = lockDatabase(source.databasePath);
    expect(await callWith(serving, key)).toBe(200);
    const made = await folders.makeBackup();
    expect([made.errors, made.exitCode]).toEqual(["", 0]);
    expect(made.output).toMatch(/spool\/.*\.spool/);
    lock.run("ROLLBACK");
    lock.close();
    await end(serving);
    expect((await folders.restore()).exitCode).toBe(0);
    expect(rowsOf(target).size).toBe(0);
    const again = await startServing(["--config", target.configPath]);
    await eventually("the row is stored", () => rowsOf(target).size === 1);
    await end(again);
    const [[row], [before]] = [[...rowsOf(target).values()], [...rowsOf(source).values()]];
    expect(row?.id).toBe(before?.id ?? "");
    expect(row?.outcome).toBe("completed");
  },
  longMs,
);

describe("a running gateway", () => {
  test(
    "refuses to be restored over, and takes its database with --running",
    async () => {
      await using folders = await BackupFolders.create();
      const { source, key } = folders;
      const serving = await startServing(["--config", source.configPath]);
      expect((await folders.makeBackup()).exitCode).toBe(0);
      const elsewhere = await folders.restore("--running");
      expect(elsewhere.errors).toContain("no gateway runs on");
      const later = await createKeyOf(source.configPath);
      await eventually("the later key works", async () => (await callWith(serving, later)) === 200);
      const over = ["restore", folders.backup, "--config", source.configPath];
      for (const option of [[], ["--replace"]]) {
        const refused = await runSluice([...over, ...option]);
        expect(refused.exitCode).toBe(1);
        expect(refused.errors).toContain("not restored: process ");
      }
      expect(await callWith(serving, later)).toBe(200);
      const { exitCode, errors } = await runSluice([...over, "--running"]);
      expect([errors, exitCode]).toEqual(["", 0]);
      await eventually("the later key ends", async () => (await callWith(serving, later)) === 401);
      expect(await callWith(serving, key)).toBe(200);
      await end(serving);
    },
    longMs,
  );

  test(
    "gets no database of another installation",
    async () => {
      await using folders = await BackupFolders.create();
      await using other = await BackupFolders.create();
      expect((await folders.makeBackup()).exitCode).toBe(0);
      const serving = await startServing(["--config", other.source.configPath]);
      const over = ["restore", folders.backup, "--running", "--config", other.source.configPath];
      const { exitCode, errors } = await runSluice(over);
      expect(exitCode).toBe(1);
      expect(errors).toContain("belongs to another installation");
      expect(await callWith(serving, other.key)).toBe(200);
      await end(serving);
    },
    longMs,
  );
});

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
  "after an upgrade that changed the schema, the version of before refuses, and takes the backup",
  async () => {
    await using folders = await BackupFolders.create();
    const { source, key } = folders;
    expect((await folders.makeBackup()).exitCode).toBe(0);
    using database = new Database(source.databasePath);
    database.run("PRAGMA user_version = 999");
    database.close();
    const refused = await runSluice(["serve", "--config", source.configPath]);
    expect(refused.exitCode).toBe(1);
    expect(refused.errors).toContain("was written by a newer version of Sluice");
    const back = ["restore", folders.backup, "--replace", "--config", source.configPath];
    expect((await runSluice(back)).exitCode).toBe(0);
    const serving = await startServing(["--config", source.configPath]);
    expect(await callWith(serving, key)).toBe(200);
    await end(serving);
  },
  longMs,
);

describe("a restore", () => {
  let folders: BackupFolders;
  beforeAll(async () => {
    folders = await BackupFolders.create();
    expect((await folders.makeBackup()).exitCode).toBe(0);
  }, longMs);
  afterAll(() => folders[Symbol.asyncDispose]());

  /** The message of a refusal to restore a copy of the backup that was changed. */
  async function refusalOf(change: (backup: string) => void): Promise<string> {
    const copy = join(folders.path, "changed");
    cpSync(folders.backup, copy, { recursive: true });
    try {
      change(copy);
      const { configPath, databasePath } = folders.target;
      const { exitCode, errors } = await runSluice(["restore", copy, "--config", configPath]);
      expect(exitCode).toBe(1);
      expect(existsSync(databasePath)).toBe(false);
      return errors;
    } finally {
      rmSync(copy, { recursive: true });
    }
  }

  test(
    "is refused for a backup with a file that was changed, or is missing",
    async () => {
      const changed = await refusalOf((copy) => appendFileSync(join(copy, "pepper"), " "));
      expect(changed).toContain("is not what was written");
      const missing = await refusalOf((copy) => rmSync(join(copy, "sluice.db")));
      expect(missing).toContain("sluice.db is missing");
      const noManifest = await refusalOf((copy) => rmSync(join(copy, "backup.json")));
      expect(noManifest).toContain("cannot be read");
    },
    longMs,
  );

  /** With the digests of what is there now, as if the backup had been made so. */
  function sign(copy: string, name: string): void {
    const path = join(copy, "backup.json");
    const manifest = z
      .looseObject({ files: z.record(z.string(), z.string()) })
      .parse(JSON.parse(readFileSync(path, "utf8")));
    const digest = new Bun.CryptoHasher("sha256").update(readFileSync(join(copy, name)));
    manifest.files[name] = digest.digest("hex");
    writeFileSync(path, JSON.stringify(manifest));
  }

  test(
    "is refused for a backup that names a file outside of it, or no database",
    async () => {
      const outside = join(folders.path, "outside");
      writeFileSync(outside, "x");
      const foreign = await refusalOf((copy) => sign(copy, "../outside"));
      expect(foreign).toContain("names a file that is not part of a backup: ../outside");
      expect(existsSync(join(folders.target.dataDir, "../outside"))).toBe(false);
      const unsigned = await refusalOf((copy) => {
        const path = join(copy, "backup.json");
        writeFileSync(path, readFileSync(path, "utf8").replace('"sluice.db":', '"pepper":'));
      });
      expect(unsigned).toContain("names no database");
    },
    longMs,
  );

  test(
    "that cannot write the database leaves the data as it was",
    async () => {
      await using other = await BackupFolders.create();
      const { configPath, databasePath, dataDir } = other.source;
      const obstacle = `${databasePath}.restoring`;
      mkdirSync(join(obstacle, "folder"), { recursive: true });
      const pepper = readFileSync(join(dataDir, "pepper"), "utf8");
      const over = ["restore", folders.backup, "--replace", "--config", configPath];
      const { exitCode, errors } = await runSluice(over);
      expect(exitCode).toBe(1);
      expect(errors).toContain("not restored: ");
      expect(errors).toContain("Nothing was changed.");
      expect(readFileSync(join(dataDir, "pepper"), "utf8")).toBe(pepper);
      expect(existsSync(join(dataDir, "restoring"))).toBe(false);
      const serving = await startServing(["--config", configPath]);
      expect(await callWith(serving, other.key)).toBe(200);
      await end(serving);
      rmSync(obstacle, { recursive: true, force: true });
      expect((await runSluice(over)).exitCode).toBe(0);
    },
    longMs,
  );

  test(
    "is refused for a damaged database, another pepper, and a newer schema",
    async () => {
      const damaged = await refusalOf((copy) => {
        const path = join(copy, "sluice.db");
        const bytes = readFileSync(path);
        bytes.fill(0xff, 8_192, 16_384);
        writeFileSync(path, bytes);
        sign(copy, "sluice.db");
      });
      expect(damaged).toContain("is damaged");
      const pepper = await refusalOf((copy) => {
        writeFileSync(join(copy, "pepper"), "a pepper of another installation, long enough\n");
        sign(copy, "pepper");
      });
      expect(pepper).toContain("need another pepper");
      const newer = await refusalOf((copy) => {
        using database = new Database(join(copy, "sluice.db"));
        database.run("PRAGMA user_version = 999");
        database.close();
        sign(copy, "sluice.db");
      });
      expect(newer).toContain("of a newer version of Sluice");
    },
    longMs,
  );

  test(
    "is refused over data, and moves it aside with --replace",
    async () => {
      const { target, key } = folders;
      expect((await folders.restore("--verify")).output).toContain("good, made at");
      expect(existsSync(target.databasePath)).toBe(false);
      const own = await createKeyOf(target.configPath);
      const refused = await folders.restore();
      expect(refused.exitCode).toBe(1);
      expect(refused.errors).toContain("not restored: there is data");
      const replaced = await folders.restore("--replace");
      expect([replaced.errors, replaced.exitCode]).toEqual(["", 0]);
      const serving = await startServing(["--config", target.configPath]);
      expect(await callWith(serving, key)).toBe(200);
      expect(await callWith(serving, own)).toBe(401);
      await end(serving);
      // What was there can be put back.
      const aside = replaced.output.split("the previous data is in ")[1]?.trim().split(", ") ?? [];
      const [folder = "", database = ""] = aside;
      rmSync(`${target.databasePath}-wal`, { force: true });
      rmSync(`${target.databasePath}-shm`, { force: true });
      for (const path of aside.filter((each) => each.startsWith(target.databasePath))) {
        renameSync(path, path.replace(/\.before-restore-\w+/, ""));
      }
      expect(database).toStartWith(target.databasePath);
      cpSync(folder, target.dataDir, { recursive: true });
      const before = await startServing(["--config", target.configPath]);
      expect(await callWith(before, own)).toBe(200);
      await end(before);
    },
    longMs,
  );
});

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
