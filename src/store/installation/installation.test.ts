import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Secret } from "../../domain/keys/secret.ts";
import { WrongDatabase } from "../errors.ts";
import { Installation } from "./installation.ts";
import type { DatabaseFacts } from "../store.ts";
import { SqliteConnection } from "../sqlite/connection/connection.ts";
import { openDatabase } from "../sqlite/connection/open-database.ts";
import { Peppers } from "../../domain/keys/peppers.ts";

const clock = { now: () => 1_000 };
const random = (target: Uint8Array): Uint8Array => crypto.getRandomValues(target);

class Bench {
  readonly folder = mkdtempSync(join(tmpdir(), "sluice-installation-"));
  readonly dataDir = join(this.folder, "data");
  readonly databasePath = join(this.folder, "sluice.db");
  readonly idPath = join(this.dataDir, "installation");
  readonly pepperPath = join(this.dataDir, "pepper");

  installation(...configured: readonly string[]): Installation {
    const auth = { peppers: configured.map((text) => new Secret(text)) };
    const storage = { backend: "sqlite" } as const;
    return new Installation({ dataDir: this.dataDir, auth, storage }, { random, clock });
  }

  connection(owner = this.installation()): SqliteConnection {
    return new SqliteConnection({ path: this.databasePath, busyTimeoutMs: 10, owner });
  }

  async open(owner = this.installation()): Promise<void> {
    await using connection = this.connection(owner);
    await connection.open();
  }
}

function withBench(run: (bench: Bench) => Promise<void> | void): () => Promise<void> {
  return async () => {
    const bench = new Bench();
    try {
      await run(bench);
    } finally {
      rmSync(bench.folder, { recursive: true, force: true });
    }
  };
}

const configured = "a configured pepper that is long enough";
const other = "another configured pepper, long enough";

function markOfText(text: string): string {
  return new Peppers(new Secret(text)).first.mark;
}

/** Which databases are accepted, by their facts and those of the data directory. */
const databases: readonly (readonly [
  name: string,
  facts: Partial<DatabaseFacts>,
  refusals: { readonly unused: string; readonly used: string },
])[] = [
  ["none", { state: "missing" }, { unused: "", used: "is missing" }],
  ["an empty one", { state: "empty" }, { unused: "", used: "is empty" }],
  ["one that nobody has claimed", {}, { unused: "", used: "" }],
  ["its own", { installation: "inst_own" }, { unused: "", used: "" }],
  [
    "another's",
    { installation: "inst_other" },
    { unused: "", used: "belongs to another installation" },
  ],
  [
    "its own, with its pepper",
    { installation: "inst_own", pepperMark: markOfText(configured) },
    { unused: "", used: "" },
  ],
  [
    "its own, with another pepper",
    { installation: "inst_own", pepperMark: markOfText(other) },
    { unused: "was used with another pepper", used: "was used with another pepper" },
  ],
];

test.each(databases)(
  "a database is checked against an unused and a used data directory: %s",
  async (_, facts, refusals) => {
    const known = { path: "x.db", state: "filled", version: 1, installation: undefined } as const;
    const whole = { ...known, pepperMark: undefined, ...facts };
    for (const [use, refusal] of Object.entries(refusals)) {
      await withBench((bench) => {
        const { folder } = bench.installation(configured);
        if (use === "used") folder.keepId("inst_own");
        const check = (): void => bench.installation(configured).check(whole);
        if (refusal === "") check();
        else expect(check).toThrow(new RegExp(`^the database x.db ${refusal}`));
      })();
    }
  },
);

test(
  "the first start creates an id and a pepper, which database and directory store",
  withBench(async (bench) => {
    await bench.open();
    const id = readFileSync(bench.idPath, "utf8").trim();
    expect(id).toMatch(/^inst_[0-9A-Za-z]{22}$/);
    using database = new Database(bench.databasePath);
    expect(database.query("SELECT id, pepper_mark FROM installation").all()).toEqual([
      { id, pepper_mark: bench.installation().peppers.first.mark },
    ]);
    const pepper = readFileSync(bench.pepperPath, "utf8");
    await bench.open();
    expect(readFileSync(bench.idPath, "utf8").trim()).toBe(id);
    expect(readFileSync(bench.pepperPath, "utf8")).toBe(pepper);
  }),
);

test(
  "a pepper that was never used for a database is not stored",
  withBench((bench) => {
    expect(bench.installation().peppers.first.mark).not.toBe("");
    expect(existsSync(bench.dataDir)).toBe(false);
  }),
);

test(
  "a start that was interrupted at any step is followed by one that succeeds",
  withBench(async (bench) => {
    // The database has its tables, but the directory is empty.
    openDatabase(bench.databasePath, { busyTimeoutMs: 10, isCreating: true }).close();
    await bench.open();
    // The database has everything but the row.
    using database = new Database(bench.databasePath);
    database.run("DELETE FROM installation");
    const id = readFileSync(bench.idPath, "utf8");
    await bench.open();
    expect(database.query("SELECT id FROM installation").all()).toEqual([{ id: id.trim() }]);
    // The directory has a pepper and no id, or half an id.
    database.run("DELETE FROM installation");
    writeFileSync(bench.idPath, "");
    await bench.open();
    expect(readFileSync(bench.idPath, "utf8")).not.toBe("");
  }),
);

test(
  "of two concurrent first starts, the second one finds that its pepper is the wrong one",
  withBench(async (bench) => {
    const slow = bench.connection();
    await bench.open();
    const refused = await slow.open().catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(WrongDatabase);
    await slow.close();
    await bench.open();
  }),
);

test(
  "once it has a database, no other one is accepted, for any earlier state of the directory",
  withBench(async (bench) => {
    const owner = bench.installation(configured);
    await bench.open(owner);
    const stranger = { path: "x.db", state: "filled", installation: "inst_x" } as const;
    const marks = { version: 1, pepperMark: undefined };
    expect(() => owner.check({ ...stranger, ...marks })).toThrow("belongs to another installation");
  }),
);

test(
  "a directory without an id adopts that of its database",
  withBench(async (bench) => {
    await bench.open(bench.installation(configured));
    const id = readFileSync(bench.idPath, "utf8");
    rmSync(bench.dataDir, { recursive: true });
    await bench.open(bench.installation(configured));
    expect(readFileSync(bench.idPath, "utf8")).toBe(id);
  }),
);

test(
  "a database with any of the peppers is accepted, and has the first from then on",
  withBench(async (bench) => {
    const markIn = (): unknown => {
      using database = new Database(bench.databasePath);
      return database.query("SELECT pepper_mark FROM installation").get();
    };
    await bench.open(bench.installation(configured));
    expect(markIn()).toEqual({ pepper_mark: markOfText(configured) });
    await bench.open(bench.installation(other, configured));
    expect(markIn()).toEqual({ pepper_mark: markOfText(other) });
    await bench.open(bench.installation(configured, other));
    expect(markIn()).toEqual({ pepper_mark: markOfText(configured) });
    const refused = await bench.open(bench.installation(other)).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(WrongDatabase);
  }),
);
