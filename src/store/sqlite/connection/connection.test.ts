import { sql } from "kysely";
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { ManualClock } from "../../../../test/support/manual-clock.ts";
import { OtherSchema, StorageUnavailable } from "../../errors.ts";
import { schemaVersion } from "../../repositories/schema.ts";
import { SqliteConnection } from "./connection.ts";

const garbage = "this is no database, and it is long enough to look like one. ".repeat(300);

/** A connection to its own file, and the failures that it reported. */
class Bench {
  readonly folder = mkdtempSync(join(tmpdir(), "sluice-connection-"));
  readonly path = join(this.folder, "data", "sluice.db");
  readonly clock = new ManualClock();
  readonly told: string[] = [];
  readonly connection: SqliteConnection;

  constructor() {
    this.connection = new SqliteConnection({
      path: this.path,
      busyTimeoutMs: 1,
      lockWaitMs: 60,
      reopenIntervalMs: 500,
      queueLimit: 100,
      clock: this.clock,
      onTrouble: (what) => this.told.push(what),
      onRecovered: () => this.told.push("recovered"),
    });
  }

  note(text: string): Promise<void> {
    return this.connection.transact((database) => {
      database.query("INSERT INTO notes VALUES (?)").run(text);
      return Promise.resolve();
    });
  }

  notes(): Promise<readonly string[]> {
    return this.connection.use((database) =>
      database
        .query<{ text: string }, []>("SELECT text FROM notes ORDER BY rowid")
        .all()
        .map(({ text }) => text),
    );
  }

  /** Damages all pages of notes except the first. */
  async damage(): Promise<void> {
    await this.connection.transact((database) => {
      const insert = database.query("INSERT INTO notes VALUES (?)");
      for (let note = 0; note < 1_000; note += 1) insert.run(`${note} ${"x".repeat(400)}`);
      return Promise.resolve();
    });
    await this.checkpoint();
    copyFileSync(this.path, `${this.path}.backup`);
    const pages = await this.connection.use((database) => {
      // Clears the cache of pages.
      database.run("PRAGMA shrink_memory");
      const roots = "SELECT max(rootpage) AS last FROM sqlite_schema";
      return database.query<{ last: number }, []>(roots).get()?.last ?? 0;
    });
    writeFileSync(this.path, readFileSync(this.path).fill(0xa5, pages * 4_096));
  }

  /** Empties the log, so that the file alone is the database. */
  checkpoint(): Promise<void> {
    return this.connection.use((database) => {
      database.query("PRAGMA wal_checkpoint(TRUNCATE)").get();
    });
  }

  async fails(attempt: () => Promise<unknown>): Promise<StorageUnavailable> {
    try {
      await attempt();
    } catch (error) {
      if (error instanceof StorageUnavailable) return error;
      throw error;
    }
    throw new Error("the database was usable");
  }
}

function withBench(run: (bench: Bench) => Promise<void>): () => Promise<void> {
  return async () => {
    const bench = new Bench();
    try {
      await bench.connection.use((database) => {
        database.run("CREATE TABLE notes (text TEXT NOT NULL UNIQUE) STRICT");
      });
      bench.clock.advance(10_000);
      await run(bench);
    } finally {
      await bench.connection.close();
      rmSync(bench.folder, { recursive: true, force: true });
    }
  };
}

test(
  "a transaction that throws is rolled back and rethrows",
  withBench(async (bench) => {
    const failing = bench.connection.transact((database) => {
      database.run("INSERT INTO notes VALUES ('gone')");
      return Promise.reject(new RangeError("mine"));
    });
    expect(failing).rejects.toBeInstanceOf(RangeError);
    expect(await bench.notes()).toEqual([]);
  }),
);

test(
  "transactions and steps run in order of arrival, one at a time",
  withBench(async (bench) => {
    const order: string[] = [];
    const slow = (name: string): Promise<void> =>
      bench.connection.transact(async (database) => {
        order.push(`${name} begins`);
        database.query("INSERT INTO notes VALUES (?)").run(name);
        await Bun.sleep(1);
        order.push(`${name} ends`);
      });
    const step = bench.connection.use.bind(bench.connection);
    await Promise.all([slow("a"), step(() => order.push("step")), slow("b"), bench.notes()]);
    expect(order).toEqual(["a begins", "a ends", "step", "b begins", "b ends"]);
    expect(await bench.notes()).toEqual(["a", "b"]);
  }),
);

test(
  "a fault of the data is rethrown unchanged, and is no trouble of the database",
  withBench(async (bench) => {
    await bench.note("one");
    expect(bench.note("one")).rejects.toThrow("UNIQUE");
    expect(
      bench.connection.use((database) => database.run("SELECT absent FROM notes")),
    ).rejects.toThrow("no such column");
    await bench.note("two");
    expect(await bench.notes()).toEqual(["one", "two"]);
    expect(bench.told).toEqual([]);
  }),
);

test(
  "work waits for another process that writes, in order",
  withBench(async (bench) => {
    using other = new Database(bench.path);
    other.run("BEGIN EXCLUSIVE");
    const first = bench.note("first");
    const second = bench.note("second");
    await Bun.sleep(5);
    other.run("ROLLBACK");
    await Promise.all([first, second]);
    expect(await bench.notes()).toEqual(["first", "second"]);
    expect(bench.told).toEqual([]);
  }),
);

test(
  "a lasting lock makes changes unavailable, but not reads, until it is released",
  withBench(async (bench) => {
    await bench.note("before");
    using other = new Database(bench.path);
    other.run("BEGIN EXCLUSIVE");
    const error = await bench.fails(() => bench.note("during"));
    expect(error.message).toContain("locked");
    expect(error.cause).toBeInstanceOf(Error);
    expect(await bench.notes()).toEqual(["before"]);
    await bench.fails(() => bench.note("during"));
    expect(bench.told).toEqual(["is locked by another process"]);
    other.run("ROLLBACK");
    await bench.note("after");
    expect(await bench.notes()).toEqual(["before", "after"]);
    expect(bench.told).toEqual(["is locked by another process", "recovered"]);
  }),
);

test(
  "work that was queued behind a lock tries once more, without the full wait again",
  withBench(async (bench) => {
    using other = new Database(bench.path);
    other.run("BEGIN EXCLUSIVE");
    const triesAfter = async (waitedMs: number): Promise<number> => {
      let tries = 0;
      const attempt = bench.fails(() =>
        bench.connection.use((database) => {
          tries += 1;
          database.run("INSERT INTO notes VALUES ('late')");
        }),
      );
      bench.clock.advance(waitedMs);
      await attempt;
      return tries;
    };
    expect(await triesAfter(0)).toBeGreaterThan(1);
    expect(await triesAfter(1_000)).toBe(1);
  }),
);

test(
  "work beyond the queue's limit is refused at once",
  withBench(async (bench) => {
    const gate = Promise.withResolvers<void>();
    const running = bench.connection.transact(() => gate.promise);
    const waiting = Array.from({ length: 99 }, () => bench.connection.use(() => 1));
    expect((await bench.fails(() => bench.connection.use(() => 1))).message).toContain(
      "too many operations",
    );
    gate.resolve();
    await Promise.all([running, ...waiting]);
    expect(await bench.connection.use(() => 2)).toBe(2);
  }),
);

test(
  "a file replaced by garbage is detected, and the right one works again without a restart",
  withBench(async (bench) => {
    await bench.note("kept");
    await bench.checkpoint();
    copyFileSync(bench.path, `${bench.path}.backup`);
    writeFileSync(`${bench.path}.bad`, garbage);
    renameSync(`${bench.path}.bad`, bench.path);
    expect((await bench.fails(() => bench.notes())).message).toContain("is not a database");
    expect((await bench.fails(() => bench.note("lost"))).message).toContain("is not a database");
    renameSync(`${bench.path}.backup`, bench.path);
    // It is too soon to open it again.
    await bench.fails(() => bench.notes());
    bench.clock.advance(500);
    expect(await bench.notes()).toEqual(["kept"]);
    await bench.note("new");
    expect(bench.told).toEqual(["is not a database", "recovered"]);
  }),
);

test(
  "a damaged file is not opened again until it is replaced",
  withBench(async (bench) => {
    await bench.damage();
    expect((await bench.fails(() => bench.notes())).message).toContain("is damaged");
    expect(bench.connection.needsRestore).toBe("is damaged");
    for (let tries = 0; tries < 3; tries += 1) {
      bench.clock.advance(500);
      await bench.fails(() => bench.connection.use(() => "anything at all"));
    }
    expect(bench.told).toEqual(["is damaged"]);
    renameSync(`${bench.path}.backup`, bench.path);
    bench.clock.advance(500);
    expect(await bench.notes()).toHaveLength(1_000);
    expect(bench.told).toEqual(["is damaged", "recovered"]);
    expect(bench.connection.needsRestore).toBeUndefined();
  }),
);

test(
  "an empty file is not made a database while the process runs",
  withBench(async (bench) => {
    await bench.note("kept");
    await bench.checkpoint();
    renameSync(bench.path, `${bench.path}.away`);
    writeFileSync(bench.path, "");
    expect((await bench.fails(() => bench.notes())).message).toContain("is empty now");
    expect(statSync(bench.path).size).toBe(0);
    renameSync(`${bench.path}.away`, bench.path);
    bench.clock.advance(500);
    expect(await bench.notes()).toEqual(["kept"]);
  }),
);

test(
  "a missing file is not replaced by an empty database",
  withBench(async (bench) => {
    await bench.note("kept");
    await bench.checkpoint();
    renameSync(bench.path, `${bench.path}.away`);
    expect((await bench.fails(() => bench.notes())).message).toContain("cannot be opened");
    expect(existsSync(bench.path)).toBe(false);
    renameSync(dirname(bench.path), `${dirname(bench.path)}.away`);
    bench.clock.advance(500);
    await bench.fails(() => bench.notes());
    renameSync(`${dirname(bench.path)}.away`, dirname(bench.path));
    renameSync(`${bench.path}.away`, bench.path);
    bench.clock.advance(500);
    expect(await bench.notes()).toEqual(["kept"]);
    expect(bench.told).toEqual(["cannot be opened", "recovered"]);
  }),
);

test("a missing folder is created; one that cannot be created is trouble until it can", async () => {
  const bench = new Bench();
  writeFileSync(join(bench.folder, "data"), "in the way");
  expect((await bench.fails(() => bench.connection.open())).message).toContain(bench.path);
  rmSync(join(bench.folder, "data"));
  bench.clock.advance(500);
  await bench.connection.open();
  expect(existsSync(bench.path)).toBe(true);
  expect(bench.told).toEqual(["cannot be opened", "recovered"]);
  await bench.connection.close();
  rmSync(bench.folder, { recursive: true, force: true });
});

test("a file that is no database is refused when it is opened, and stays unchanged", async () => {
  const bench = new Bench();
  mkdirSync(dirname(bench.path));
  writeFileSync(bench.path, garbage);
  expect((await bench.fails(() => bench.connection.open())).message).toContain("is not a database");
  await bench.connection.close();
  expect(await Bun.file(bench.path).text()).toBe(garbage);
  rmSync(bench.folder, { recursive: true, force: true });
});

test("a database of another version is refused with that error", async () => {
  const bench = new Bench();
  mkdirSync(dirname(bench.path));
  const newer = new Database(bench.path, { create: true });
  newer.run(`PRAGMA user_version = ${schemaVersion + 1}`);
  newer.close();
  const error = await bench.fails(() => bench.connection.open());
  expect(error).toBeInstanceOf(OtherSchema);
  expect(error.message).toContain(`has the schema ${schemaVersion + 1}`);
  expect(error.message).toContain(bench.path);
  await bench.connection.close();
  rmSync(bench.folder, { recursive: true, force: true });
});

test(
  "a read-only database still serves reads, and accepts changes once it is writable",
  withBench(async (bench) => {
    await bench.note("kept");
    await bench.connection.use((database) => database.run("PRAGMA query_only = ON"));
    expect((await bench.fails(() => bench.note("lost"))).message).toContain("is read-only");
    expect(await bench.notes()).toEqual(["kept"]);
    await bench.connection.read(() => Promise.resolve());
    expect(bench.told).toEqual(["is read-only"]);
    bench.clock.advance(500);
    await bench.note("new");
    expect(await bench.notes()).toEqual(["kept", "new"]);
    expect(bench.told).toEqual(["is read-only", "recovered"]);
  }),
);

test(
  "a read-only connection is opened again although changes keep failing",
  withBench(async (bench) => {
    await bench.note("kept");
    await bench.connection.use((database) => database.run("PRAGMA query_only = ON"));
    const outcomes: string[] = [];
    for (let tries = 0; tries < 3; tries += 1) {
      outcomes.push(await bench.note(`try ${tries}`).then(() => "", String));
      bench.clock.advance(300);
    }
    expect(outcomes[0]).toContain("is read-only");
    expect(outcomes.at(-1)).toBe("");
  }),
);

test(
  "a full disk rolls back a change, and accepts the next one once there is room",
  withBench(async (bench) => {
    await bench.note("kept");
    const pages = await bench.connection.use(
      (database) =>
        database.query<{ page_count: number }, []>("PRAGMA page_count").get()?.page_count,
    );
    await bench.connection.use((database) => database.run(`PRAGMA max_page_count = ${pages}`));
    const big = bench.connection.transact((database) => {
      database.run("INSERT INTO notes VALUES ('small')");
      database.query("INSERT INTO notes VALUES (?)").run("x".repeat(100_000));
      return Promise.resolve();
    });
    expect(big).rejects.toThrow("has no room left");
    expect(await bench.notes()).toEqual(["kept"]);
    await bench.connection.use((database) => database.run("PRAGMA max_page_count = 100000"));
    await bench.note("new");
    expect(await bench.notes()).toEqual(["kept", "new"]);
    expect(bench.told).toEqual(["has no room left on the disk", "recovered"]);
  }),
);

test(
  "a transaction that SQLite rolled back by itself cannot continue",
  withBench(async (bench) => {
    const running = bench.connection.transact((database) => {
      database.run("ROLLBACK");
      return Promise.resolve();
    });
    expect(running).rejects.toBeInstanceOf(StorageUnavailable);
  }),
);

test(
  "close completes earlier work and refuses later work",
  withBench(async (bench) => {
    const before = bench.note("before");
    const closing = bench.connection.close();
    const after = bench.fails(() => bench.note("after"));
    await before;
    await closing;
    expect((await after).message).toContain("closed");
    using reader = new Database(bench.path);
    expect(reader.query("SELECT text FROM notes").all()).toEqual([{ text: "before" }]);
  }),
);

test(
  "a snapshot has one state, although another process writes meanwhile",
  withBench(async (bench) => {
    await bench.note("one");
    using other = new Database(bench.path);
    const counts = await bench.connection.read(async (queries) => {
      const count = async () => (await sql`SELECT * FROM notes`.execute(queries)).rows.length;
      const before = await count();
      other.run("INSERT INTO notes VALUES ('two')");
      await Bun.sleep(1);
      return [before, await count()];
    });
    expect(counts).toEqual([1, 1]);
    expect(await bench.notes()).toEqual(["one", "two"]);
  }),
);
