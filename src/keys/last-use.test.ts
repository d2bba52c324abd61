import { expect, test } from "bun:test";
import { LastUse } from "./last-use.ts";

/** A store that keeps what it is given and can be unavailable. */
class NoteStore {
  readonly written: Record<string, number>[] = [];
  isUnavailable = false;
  /** Runs during a write. */
  duringWrite: () => void = () => undefined;

  async recordLastUse(uses: ReadonlyMap<string, number>): Promise<void> {
    await Promise.resolve();
    this.duringWrite();
    if (this.isUnavailable) throw new Error("database is locked");
    this.written.push(Object.fromEntries(uses));
  }
}

function setUp() {
  const store = new NoteStore();
  const events: string[] = [];
  const lastUse = new LastUse({
    store,
    intervalMs: 1,
    on: {
      failed: (error) => void events.push(error instanceof Error ? error.message : "?"),
      recovered: () => void events.push("stored"),
    },
  });
  return { store, lastUse, events };
}

test("the latest use of each secret is written once, in one batch", async () => {
  const { store, lastUse } = setUp();
  lastUse.note("aaaaaaaa", 10);
  lastUse.note("bbbbbbbb", 20);
  lastUse.note("aaaaaaaa", 30);
  expect([lastUse.of("aaaaaaaa"), lastUse.of("cccccccc")]).toEqual([30, undefined]);
  await lastUse.flush();
  await lastUse.flush();
  expect(store.written).toEqual([{ aaaaaaaa: 30, bbbbbbbb: 20 }]);
  expect(lastUse.of("aaaaaaaa")).toBeUndefined();
});

test("uses that could not be stored are kept and reported until they are", async () => {
  const { store, lastUse, events } = setUp();
  store.isUnavailable = true;
  lastUse.note("aaaaaaaa", 10);
  await lastUse.flush();
  lastUse.note("bbbbbbbb", 20);
  expect([lastUse.of("aaaaaaaa"), lastUse.of("bbbbbbbb")]).toEqual([10, 20]);
  store.isUnavailable = false;
  await lastUse.flush();
  expect(store.written).toEqual([{ aaaaaaaa: 10, bbbbbbbb: 20 }]);
  expect(events).toEqual(["database is locked", "stored"]);
});

test("a use during a write is kept for the next one", async () => {
  const { store, lastUse } = setUp();
  lastUse.note("aaaaaaaa", 10);
  store.duringWrite = () => lastUse.note("aaaaaaaa", 11);
  await lastUse.flush();
  expect(lastUse.of("aaaaaaaa")).toBe(11);
  store.duringWrite = () => undefined;
  await lastUse.flush();
  expect(store.written).toEqual([{ aaaaaaaa: 10 }, { aaaaaaaa: 11 }]);
});

test("many uses are written in batches, none of them twice", async () => {
  const { store, lastUse } = setUp();
  for (let index = 0; index < 2_500; index += 1) lastUse.note(`id${index}`, index);
  await lastUse.flush();
  expect(store.written.map((part) => Object.keys(part).length)).toEqual([1_000, 1_000, 500]);
  expect(Object.assign({}, ...store.written)).toHaveProperty("id2499", 2_499);
});

test("a failure half-way keeps only the unwritten uses", async () => {
  const { store, lastUse } = setUp();
  for (let index = 0; index < 1_500; index += 1) lastUse.note(`id${index}`, index);
  store.duringWrite = () => {
    store.isUnavailable = store.written.length === 1;
  };
  await lastUse.flush();
  expect([lastUse.of("id0"), lastUse.of("id1499")]).toEqual([undefined, 1_499]);
});

test("memory is bounded while the store is unavailable", async () => {
  const { store, lastUse } = setUp();
  for (let index = 0; index < 100_500; index += 1) lastUse.note(`id${index}`, 1);
  lastUse.note("id0", 2);
  expect([lastUse.of("id0"), lastUse.of("id99999"), lastUse.of("id100000")]).toEqual([
    2,
    1,
    undefined,
  ]);
  await lastUse.flush();
  expect(store.written).toHaveLength(100);
});

test("it writes at its interval and once more at the stop", async () => {
  const { store, lastUse } = setUp();
  const written = Promise.withResolvers<void>();
  store.duringWrite = () => written.resolve();
  lastUse.start();
  lastUse.note("aaaaaaaa", 10);
  await written.promise;
  store.duringWrite = () => undefined;
  lastUse.note("bbbbbbbb", 20);
  await lastUse.stop();
  expect(Object.assign({}, ...store.written)).toEqual({ aaaaaaaa: 10, bbbbbbbb: 20 });
});
