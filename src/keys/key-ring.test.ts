import { describe, expect, test } from "bun:test";
import { unitsIn } from "../domain/limits/capacity.ts";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { applicationOf, keyOf, secretOf } from "../../test/contracts/control-fixtures.ts";
import type { Key } from "../domain/keys/key.ts";
import type { KeyChange, KeyChanges, KeyStore } from "../store/store.ts";
import { KeyRing } from "./key-ring.ts";

const application = applicationOf("app_a");

function liveOf(keyId: string, ...publicIds: readonly string[]): KeyChange {
  const secrets = publicIds.map((publicId) => secretOf(publicId, keyId));
  return { keyId, live: { key: keyOf(keyId, application), secrets } };
}

function goneOf(keyId: string): KeyChange {
  return { keyId, live: undefined };
}

/** A store that answers each load when the test says so. */
class HeldStore implements Pick<KeyStore, "loadKeys"> {
  readonly asked: number[] = [];
  readonly #answers: ReturnType<typeof Promise.withResolvers<KeyChanges>>[] = [];

  loadKeys(since: number): Promise<KeyChanges> {
    this.asked.push(since);
    const answer = Promise.withResolvers<KeyChanges>();
    this.#answers.push(answer);
    return answer.promise;
  }

  recordLastUse(): Promise<void> {
    return Promise.resolve();
  }

  async answer(epoch: number, changes: readonly KeyChange[], hasMore = false): Promise<void> {
    this.#answers.shift()?.resolve({ epoch, changes, hasMore });
    await settled();
  }

  async fail(): Promise<void> {
    this.#answers.shift()?.reject(new Error("database is locked"));
    await settled();
  }
}

function idsOf(ring: KeyRing): readonly string[] {
  return [...ring.secrets.keys()].toSorted();
}

/** Runs all pending microtasks. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 5; turn += 1) {
    await new Promise((resolve) => setImmediate(resolve));
  }
}

function setUp(store: Pick<KeyStore, "loadKeys">) {
  const clock = new ManualClock({ monotonicMs: 50_000 });
  const events: string[] = [];
  const ring = new KeyRing({
    store,
    clock,
    intervalMs: 500,
    onReloaded: () => events.push("reloaded"),
    onReloadFailed: (error) => events.push(error instanceof Error ? error.message : "?"),
  });
  return { ring, clock, events };
}

/** A ring that has loaded its first keys from a manual store. */
async function setUpLoaded(...changes: readonly KeyChange[]) {
  const store = new HeldStore();
  const { ring, clock, events } = setUp(store);
  const loading = ring.reload();
  await store.answer(10, changes);
  await loading;
  return { store, ring, clock, events };
}

test("the ring is loaded once the first load has read all pages", async () => {
  const store = new HeldStore();
  const { ring, events } = setUp(store);
  const loading = ring.reload();
  await store.answer(3, [liveOf("key_a", "aaaaaaaa")], true);
  expect([ring.isLoaded, ring.isStale, ring.ageMs]).toEqual([false, true, Infinity]);
  await store.answer(5, [liveOf("key_b", "bbbbbbbb", "cccccccc")]);
  await loading;
  expect(idsOf(ring)).toEqual(["aaaaaaaa", "bbbbbbbb", "cccccccc"]);
  expect([ring.isLoaded, ring.isStale, ring.ageMs]).toEqual([true, false, 0]);
  expect(store.asked).toEqual([0, 3]);
  expect(events).toEqual(["reloaded"]);
});

test("a change replaces the secrets of its key and leaves other keys unchanged", async () => {
  const { ring, store } = await setUpLoaded(
    liveOf("key_a", "aaaaaaaa"),
    liveOf("key_b", "bbbbbbbb"),
  );
  const other = ring.find("bbbbbbbb");
  const loading = ring.reload();
  await store.answer(11, [liveOf("key_a", "cccccccc", "aaaaaaaa")]);
  await loading;
  expect(idsOf(ring)).toEqual(["aaaaaaaa", "bbbbbbbb", "cccccccc"]);
  expect(ring.find("bbbbbbbb")).toBe(other);
});

test("a poll without changes keeps the keys and resets their age", async () => {
  const { ring, store, clock } = await setUpLoaded(liveOf("key_a", "aaaaaaaa"));
  const before = ring.find("aaaaaaaa");
  clock.advance(6_000);
  expect([ring.isStale, ring.ageMs]).toEqual([true, 6_000]);
  const loading = ring.reload();
  await store.answer(10, []);
  await loading;
  expect(ring.find("aaaaaaaa")).toBe(before);
  expect([ring.isStale, ring.ageMs]).toEqual([false, 0]);
});

test("the ring is stale from the first failed load until one succeeds", async () => {
  const { ring, store } = await setUpLoaded(liveOf("key_a", "aaaaaaaa"));
  const failing = ring.reload();
  const ended = failing.catch(() => undefined);
  await store.fail();
  await ended;
  expect([ring.isStale, idsOf(ring)]).toEqual([true, ["aaaaaaaa"]]);
  const loading = ring.reload();
  await store.answer(10, []);
  await loading;
  expect(ring.isStale).toBe(false);
});

test("the age counts from the start of the load", async () => {
  const { ring, store, clock } = await setUpLoaded();
  const loading = ring.reload();
  clock.advance(700);
  await store.answer(10, []);
  await loading;
  expect(ring.ageMs).toBe(700);
});

test("ended secrets leave the snapshot and are remembered for explanations", async () => {
  const { ring, store } = await setUpLoaded(
    liveOf("key_a", "aaaaaaaa", "bbbbbbbb"),
    liveOf("key_c", "cccccccc"),
  );
  const loading = ring.reload();
  await store.answer(12, [liveOf("key_a", "bbbbbbbb"), goneOf("key_c"), goneOf("key_unknown")]);
  await loading;
  expect(idsOf(ring)).toEqual(["bbbbbbbb"]);
  expect(ring.findEnded("aaaaaaaa")?.rule).toBe("secret_ended");
  expect(ring.findEnded("cccccccc")).toMatchObject({ rule: "key_removed", key: { id: "key_c" } });
  expect(ring.findEnded("bbbbbbbb")).toBeUndefined();
});

test("a key whose secrets have all ended is live until it is revoked or disabled", async () => {
  const store = new HeldStore();
  const { ring } = setUp(store);
  const starting = ring.start();
  await store.answer(2, [liveOf("key_a", "a1"), liveOf("key_b")]);
  await starting;
  expect([ring.isLive("key_a"), ring.isLive("key_b"), ring.isLive("key_c")]).toEqual([
    true,
    true,
    false,
  ]);
  const ending = ring.reload();
  await store.answer(3, [liveOf("key_a")]);
  await ending;
  expect([idsOf(ring), ring.isLive("key_a")]).toEqual([[], true]);
  const revoking = ring.reload();
  await store.answer(5, [goneOf("key_a"), goneOf("key_b")]);
  await revoking;
  expect([ring.isLive("key_a"), ring.isLive("key_b")]).toEqual([false, false]);
  ring.stop();
});

test("a key that is enabled again works again", async () => {
  const { ring, store } = await setUpLoaded(liveOf("key_a", "aaaaaaaa"));
  for (const [epoch, change] of [
    [11, goneOf("key_a")],
    [12, liveOf("key_a", "aaaaaaaa")],
  ] as const) {
    const loading = ring.reload();
    await store.answer(epoch, [change]);
    await loading;
  }
  expect(ring.find("aaaaaaaa")?.key.id).toBe("key_a");
});

test("units sold follow every change of a key: assigned, raised, moved, expired, disabled, revoked", async () => {
  const holding = (values: Partial<Key>): KeyChange => {
    const key = keyOf("key_a", application, values);
    return { keyId: "key_a", live: { key, secrets: [secretOf("aaaaaaaa", "key_a")] } };
  };
  const main = { provisionedPool: "main" };
  const other = { keyId: "key_b", live: { key: keyOf("key_b", application), secrets: [] } };
  const { ring, store, clock } = await setUpLoaded(holding({}), other);
  const now = clock.now();
  let epoch = 10;
  const unitsAfter = async (change: KeyChange): Promise<unknown> => {
    const loading = ring.reload();
    await store.answer((epoch += 1), [change]);
    await loading;
    const units = [unitsIn(ring.holdings("main")), unitsIn(ring.holdings("other"))];
    expect(ring.unitsByPool.get("main") ?? 0).toBe(unitsIn(ring.holdings("main")));
    return units;
  };
  expect([unitsIn(ring.holdings("main")), ring.unitsByPool.size]).toEqual([0, 0]);
  expect(await unitsAfter(holding({ ...main, provisionedUnits: 3 }))).toEqual([3, 0]);
  expect(await unitsAfter(holding({ ...main, provisionedUnits: 5 }))).toEqual([5, 0]);
  const moved = { provisionedPool: "other", provisionedUnits: 5 };
  expect(await unitsAfter(holding(moved))).toEqual([0, 5]);
  expect(await unitsAfter(goneOf("key_a"))).toEqual([0, 0]);
  const ending = holding({ ...moved, expiresAt: now + 5_000 });
  expect(await unitsAfter(ending)).toEqual([0, 5]);
  clock.advance(5_000);
  expect(unitsIn(ring.holdings("other"))).toBe(0);
});

test("after a switch to another database its units replace the old ones", async () => {
  const key = keyOf("key_a", application, { provisionedPool: "main", provisionedUnits: 4 });
  const { ring, store } = await setUpLoaded({ keyId: "key_a", live: { key, secrets: [] } });
  expect(unitsIn(ring.holdings("main"))).toBe(4);
  const loading = ring.reload();
  await store.answer(4, []);
  await store.answer(4, [liveOf("key_b", "bbbbbbbb")]);
  await loading;
  expect(unitsIn(ring.holdings("main"))).toBe(0);
});

test("networks are parsed once, when the key is loaded", async () => {
  const key = keyOf("key_a", application, { allowedNetworks: ["10.0.0.0/8"] });
  const change = { keyId: "key_a", live: { key, secrets: [secretOf("aaaaaaaa", "key_a")] } };
  const { ring } = await setUpLoaded(change, liveOf("key_b", "bbbbbbbb"));
  expect(ring.find("aaaaaaaa")?.networks?.has("10.9.9.9")).toBe(true);
  expect(ring.find("aaaaaaaa")?.networks).toBe(ring.find("aaaaaaaa")?.networks);
  expect(ring.find("bbbbbbbb")).toHaveProperty("networks", undefined);
});

describe("consecutive loads", () => {
  test("a slow load cannot restore a key that a later one removes", async () => {
    const { ring, store } = await setUpLoaded(liveOf("key_a", "aaaaaaaa"));
    const slow = ring.reload();
    const revoked = ring.reload();
    expect(store.asked).toEqual([0, 10]);
    await store.answer(11, [liveOf("key_a", "aaaaaaaa")]);
    await slow;
    expect(store.asked).toEqual([0, 10, 11]);
    await store.answer(12, [goneOf("key_a")]);
    await revoked;
    expect(ring.find("aaaaaaaa")).toBeUndefined();
  });

  test("a reload requested during a load runs after it", async () => {
    const { ring, store } = await setUpLoaded();
    const first = ring.reload();
    let isDone = false;
    const others = Promise.all([ring.reload(), ring.reload()]).then(() => (isDone = true));
    await store.answer(11, []);
    await first;
    expect(isDone).toBe(false);
    await store.answer(12, [liveOf("key_a", "aaaaaaaa")]);
    await others;
    expect(ring.find("aaaaaaaa")?.key.id).toBe("key_a");
    expect(store.asked).toEqual([0, 10, 11]);
  });

  test("the queued load also runs when the one before it fails", async () => {
    const { ring, store, events } = await setUpLoaded();
    const failing = ring.reload().catch((error: unknown) => String(error));
    const next = ring.reload();
    await store.fail();
    expect(await failing).toContain("database is locked");
    await store.answer(11, [liveOf("key_a", "aaaaaaaa")]);
    await next;
    expect(ring.find("aaaaaaaa")?.key.id).toBe("key_a");
    expect(events).toEqual(["reloaded", "database is locked", "reloaded"]);
  });
});

describe("a failure", () => {
  test("on a later page keeps the removals of the first", async () => {
    const { ring, store } = await setUpLoaded(
      liveOf("key_a", "aaaaaaaa"),
      liveOf("key_b", "bbbbbbbb"),
    );
    const failing = ring.reload().catch(() => undefined);
    await store.answer(11, [goneOf("key_a")], true);
    await store.fail();
    await failing;
    expect(idsOf(ring)).toEqual(["bbbbbbbb"]);
    const loading = ring.reload();
    expect(store.asked.at(-1)).toBe(11);
    await store.answer(12, [goneOf("key_b")]);
    await loading;
    expect(ring.secrets.size).toBe(0);
  });

  test("on a later page of the first load begins again, as a copy on disk has no pages after it", async () => {
    const store = new HeldStore();
    const { ring } = setUp(store);
    const failing = ring.reload().catch(() => undefined);
    await store.answer(11, [liveOf("key_a", "aaaaaaaa")], true);
    await store.fail();
    await failing;
    const loading = ring.reload();
    expect(store.asked).toEqual([0, 11, 0]);
    await store.answer(10, [liveOf("key_b", "bbbbbbbb")]);
    await loading;
    expect(idsOf(ring)).toEqual(["bbbbbbbb"]);
  });

  test("does not change the age", async () => {
    const { ring, store, clock } = await setUpLoaded();
    clock.advance(4_000);
    const failing = ring.reload().catch(() => undefined);
    await store.fail();
    await failing;
    expect(ring.ageMs).toBe(4_000);
  });

  test("of paging that never advances ends the load", async () => {
    const { ring, store } = await setUpLoaded();
    const failing = ring.reload().catch((error: unknown) => String(error));
    await store.answer(10, [liveOf("key_a", "aaaaaaaa")], true);
    expect(await failing).toContain("no next page");
  });
});

describe("a switch to another database", () => {
  test("an epoch that goes back reloads everything, and keys it lacks are removed", async () => {
    const { ring, store } = await setUpLoaded(
      liveOf("key_a", "aaaaaaaa"),
      liveOf("key_b", "bbbbbbbb"),
    );
    const loading = ring.reload();
    await store.answer(4, []);
    expect(idsOf(ring)).toEqual(["aaaaaaaa", "bbbbbbbb"]);
    await store.answer(4, [liveOf("key_a", "aaaaaaaa")]);
    await loading;
    expect(idsOf(ring)).toEqual(["aaaaaaaa"]);
    expect(store.asked).toEqual([0, 10, 0]);
  });

  test("a partial reload is not published", async () => {
    const { ring, store } = await setUpLoaded(liveOf("key_a", "aaaaaaaa"));
    const failing = ring.reload().catch(() => undefined);
    await store.answer(4, []);
    await store.answer(2, [liveOf("key_b", "bbbbbbbb")], true);
    await store.fail();
    await failing;
    expect(idsOf(ring)).toEqual(["aaaaaaaa"]);
  });
});

test("the start does not wait for the store: the ring loads at its first answer", async () => {
  let isUnavailable = true;
  const change = { keyId: "key_a", live: { key: keyOf("key_a", application), secrets: [] } };
  const store: Pick<KeyStore, "loadKeys"> = {
    loadKeys: () =>
      isUnavailable
        ? Promise.reject(new Error("no such file"))
        : Promise.resolve({ changes: [change], epoch: 1, hasMore: false }),
  };
  const loaded = Promise.withResolvers<void>();
  const failures: unknown[] = [];
  const ring = new KeyRing({
    store,
    clock: new ManualClock(),
    intervalMs: 1,
    onReloaded: () => loaded.resolve(),
    onReloadFailed: (error) => failures.push(error),
  });
  await ring.start();
  try {
    expect([ring.isLoaded, failures.length]).toEqual([false, 1]);
    isUnavailable = false;
    await loaded.promise;
    expect(ring.isLoaded).toBe(true);
  } finally {
    ring.stop();
  }
});

test("no load starts after the stop", async () => {
  let questions = 0;
  const store: Pick<KeyStore, "loadKeys"> = {
    loadKeys: () => {
      questions += 1;
      return Promise.resolve({ changes: [], epoch: 0, hasMore: false });
    },
  };
  const ring = new KeyRing({
    store,
    clock: new ManualClock(),
    intervalMs: 1,
    onReloaded: () => undefined,
    onReloadFailed: () => undefined,
  });
  await ring.start();
  ring.stop();
  const before = questions;
  await Bun.sleep(20);
  expect(questions).toBe(before);
});
