import { expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { until } from "../../test/support/until.ts";
import { testPeppers } from "../../test/support/test-peppers.ts";
import { readCheckpoint } from "./audit.ts";
import { AuditCheckpoints } from "./audit-checkpoints.ts";
import { auditEntryOf } from "../../test/contracts/control-fixtures.ts";
import { SqliteConnection } from "./sqlite/connection/connection.ts";
import { ControlStore } from "./repositories/control-store.ts";

const peppers = testPeppers();
const intervalMs = 3_600_000;

class Bench implements AsyncDisposable {
  readonly clock = new ManualClock();
  /** The scheduled callback. */
  due: (() => void) | undefined;
  readonly connection = new SqliteConnection({ path: ":memory:", busyTimeoutMs: 10 });
  readonly store = new ControlStore(this.connection, testPeppers());
  readonly lines: string[] = [];
  readonly broken: string[] = [];
  readonly failures: unknown[] = [];

  job(path?: string): AuditCheckpoints {
    return new AuditCheckpoints({
      isOwn: () => Promise.resolve(true),
      store: this.store,
      peppers,
      clock: {
        now: () => this.clock.now(),
        schedule: (run, delayMs) => {
          expect(delayMs).toBe(intervalMs);
          this.due = run;
          return () => (this.due = undefined);
        },
      },
      intervalMs,
      path,
      onCheckpoint: (line) => this.lines.push(line),
      onBroken: (what) => this.broken.push(what),
      onFailed: (error) => this.failures.push(error),
      onWritten: () => undefined,
    });
  }

  async append(count: number): Promise<void> {
    await this.store.change(async (to) => {
      for (let at = 1; at <= count; at += 1) await to.audit.append(auditEntryOf(at));
    });
  }

  /** Changes the database as an attacker with write access. */
  attack(sql: string): Promise<unknown> {
    return this.connection.use((database) =>
      database.run(`DROP TRIGGER IF EXISTS audit_is_never_cut; ${sql}`),
    );
  }

  /** The entry count of each checkpoint. */
  counts(): readonly (number | undefined)[] {
    return this.lines.map((line) => readCheckpoint(line, peppers)?.sequence);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.connection.close();
  }
}

class Folder implements Disposable {
  readonly #path = mkdtempSync(join(tmpdir(), "sluice-checkpoints-"));
  readonly file = join(this.#path, "of-audit", "checkpoints.jsonl");

  constructor(hasFolder = true) {
    if (hasFolder) this.make();
  }

  make(): void {
    mkdirSync(join(this.#path, "of-audit"));
  }

  get lines(): readonly string[] {
    return readFileSync(this.file, "utf8").split("\n").slice(0, -1);
  }

  [Symbol.dispose](): void {
    rmSync(this.#path, { recursive: true, force: true });
  }
}

test("publishes the end at start, every interval and at stop", async () => {
  await using bench = new Bench();
  await bench.append(2);
  const job = bench.job();
  await job.make();
  await bench.append(3);
  job.start();
  await until(() => bench.lines.length === 2);
  await bench.append(1);
  bench.due?.();
  await until(() => bench.lines.length === 3);
  await bench.append(1);
  await job.stop();
  expect(bench.counts()).toEqual([2, 5, 6, 7]);
  expect(bench.due).toBeUndefined();
  expect([bench.broken, bench.failures]).toEqual([[], []]);
});

test("signs checkpoints, so that they cannot be forged without the pepper", async () => {
  await using bench = new Bench();
  await bench.append(2);
  await bench.job().make();
  const line = bench.lines[0] ?? "";
  expect(readCheckpoint(line, testPeppers("other"))).toBeUndefined();
  expect(readCheckpoint(line, testPeppers("other", "test"))?.sequence).toBe(2);
  expect(readCheckpoint(line.replace('"last":2', '"last":1'), peppers)).toBeUndefined();
  expect(readCheckpoint("no json", peppers)).toBeUndefined();
  expect(readCheckpoint("[]", peppers)).toBeUndefined();
});

test("detects an end that was cut off, and that of a restored older state", async () => {
  await using bench = new Bench();
  const job = bench.job();
  await bench.append(5);
  await job.make();
  await bench.attack("DELETE FROM audit WHERE sequence > 2");
  await job.make();
  expect(bench.broken).toEqual(["entries that a checkpoint covers are missing"]);
});

test("a restart reads the last checkpoint from the file", async () => {
  await using bench = new Bench();
  using folder = new Folder();
  const { file } = folder;
  await bench.append(3);
  await bench.job(file).make();
  await bench.append(1);
  await bench.job(file).make();
  expect(bench.broken).toEqual([]);
  await using other = new Bench();
  await other.append(2);
  await other.job(file).make();
  expect(other.broken).toEqual(["entries that a checkpoint covers are missing"]);
});

test("entries removed by retention are not missing", async () => {
  await using bench = new Bench();
  const job = bench.job();
  await bench.append(3);
  await job.make();
  await bench.append(3);
  await bench.store.prune({ audit: 4, keys: 0, access: 0, replies: 0 }, 100);
  await job.make();
  expect(bench.broken).toEqual([]);
  expect(bench.lines.map((line) => readCheckpoint(line, peppers)?.first)).toEqual([1, 6]);
});

test("an unwritable file fails that checkpoint, and the next one is written", async () => {
  await using bench = new Bench();
  using folder = new Folder(false);
  const job = bench.job(folder.file);
  await job.make();
  folder.make();
  await job.make();
  expect(bench.failures).toMatchObject([{ code: "ENOENT" }]);
  expect(folder.lines).toHaveLength(1);
});

test("the file has a line for each checkpoint, is private to its owner, and is only appended to", async () => {
  await using bench = new Bench();
  using folder = new Folder();
  for (let count = 0; count < 20; count += 1) {
    await bench.append(1);
    await bench.job(folder.file).make();
  }
  expect(folder.lines).toEqual(bench.lines);
  expect(bench.broken).toEqual([]);
  expect(statSync(folder.file).mode & 0o777).toBe(0o600);
});
