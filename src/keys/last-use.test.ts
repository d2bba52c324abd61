import { expect, test } from "bun:test";
import { LastUse } from "./last-use.ts";

/** Keeps what it is given, and fails when it is told to. */
class NoteStore {
  readonly written: Record<string, number>[] = [];
  isAway = false;
  /** Runs while a write is under way. */
  duringWrite: () => void = () => undefined;

  async recordLastUse(uses: ReadonlyMap<string, number>): Promise<void> {
    await Promise.resolve();
    this.duringWrite();
    if (this.isAway) throw new Error("database is locked");
    this.written.push(Object.fromEntries(uses));
  }
}

function setUp() {
  const store = new NoteStore();
  const events: string[] = [];
  const lastUse = new LastUse({
    store,
    intervalMs: 1,
    onFailed: (error) => events.push(error instanceof Error ? error.message : "?"),
    onStored: () => events.push("stored"),
  });
  return { store, lastUse, events };
}

test("the latest use of each secret is written, all together, and then no more", async () => {
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

test("what could not be stored is kept and told until it is", async () => {
  const { store, lastUse, events } = setUp();
  store.isAway = true;
  lastUse.note("aaaaaaaa", 10);
  await lastUse.flush();
  lastUse.note("bbbbbbbb", 20);
  expect([lastUse.of("aaaaaaaa"), lastUse.of("bbbbbbbb")]).toEqual([10, 20]);
  store.isAway = false;
  await lastUse.flush();
  expect(store.written).toEqual([{ aaaaaaaa: 10, bbbbbbbb: 20 }]);
  expect(events).toEqual(["database is locked", "stored"]);
});

test("a use during a write is known, and written with the next one", async () => {
  const { store, lastUse } = setUp();
  lastUse.note("aaaaaaaa", 10);
  store.duringWrite = () => lastUse.note("aaaaaaaa", 11);
  await lastUse.flush();
  expect(lastUse.of("aaaaaaaa")).toBe(11);
  store.duringWrite = () => undefined;
  await lastUse.flush();
  expect(store.written).toEqual([{ aaaaaaaa: 10 }, { aaaaaaaa: 11 }]);
});

test("many notes are written in parts, none of them twice", async () => {
  const { store, lastUse } = setUp();
  for (let index = 0; index < 2_500; index += 1) lastUse.note(`id${index}`, index);
  await lastUse.flush();
  expect(store.written.map((part) => Object.keys(part).length)).toEqual([1_000, 1_000, 500]);
  expect(Object.assign({}, ...store.written)).toHaveProperty("id2499", 2_499);
});

test("a failure half-way keeps only what was not written", async () => {
  const { store, lastUse } = setUp();
  for (let index = 0; index < 1_500; index += 1) lastUse.note(`id${index}`, index);
  store.duringWrite = () => {
    store.isAway = store.written.length === 1;
  };
  await lastUse.flush();
  expect([lastUse.of("id0"), lastUse.of("id1499")]).toEqual([undefined, 1_499]);
});

test("however many secrets are used while the store is away, memory is bounded", async () => {
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

test("it writes by itself, and once more at the stop", async () => {
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
