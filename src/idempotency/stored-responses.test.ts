import { describe, expect, test } from "bun:test";
import { MemoryResponseStore, responseWorld } from "../../test/support/response-world.ts";
import { testPeppers } from "../../test/support/test-peppers.ts";
import { until } from "../../test/support/until.ts";

const id = "resp_1";
const body = '{"a":1}';
const input = '{"items":[]}';

type World = ReturnType<typeof responseWorld>;

async function keep({ stored, callOf }: World, text = body): Promise<boolean> {
  const held = stored.hold(callOf(), { id, input });
  expect(held).toBeDefined();
  return (await held?.keep(text)) ?? false;
}

test("what was kept is found by its id, with its input if that is wanted", async () => {
  const world = responseWorld();
  expect(await keep(world)).toBeTrue();
  const { stored, callOf } = world;
  const found = await stored.find(callOf(), [id, "resp_2"], true);
  expect([...found]).toEqual([[id, { id, body, input }]]);
});

test("the store sees neither the id nor the texts", async () => {
  const world = responseWorld();
  await keep(world);
  const [row] = world.store.rows.values();
  const seen = JSON.stringify(row) + Buffer.from(row?.body ?? []).toString();
  for (const secret of [id, body, input, "items"]) expect(seen).not.toContain(secret);
});

describe("nothing is found", () => {
  test("by another account, or by its own after the time", async () => {
    const world = responseWorld();
    await keep(world);
    const { stored, callOf, clock } = world;
    expect((await stored.find(callOf("acct_b"), [id])).size).toBe(0);
    expect(await stored.remove(callOf("acct_b"), id)).toBeFalse();
    expect((await stored.find(callOf(), [id])).size).toBe(1);
    clock.advance(3_600_000);
    expect((await stored.find(callOf(), [id])).size).toBe(0);
  });

  test("on a plan that keeps nothing", async () => {
    const world = responseWorld();
    await keep(world);
    const none = world.callOf("acct_a", 0);
    expect(world.stored.stores(none)).toBeFalse();
    expect((await world.stored.find(none, [id])).size).toBe(0);
  });

  test("in a row that was moved to another account, or whose parts were exchanged", async () => {
    const world = responseWorld();
    await keep(world);
    const { store, stored, callOf } = world;
    const [row] = store.rows.values();
    if (row === undefined) throw new Error("nothing was stored");
    store.rows.set(row.id, { ...row, accountId: "acct_b" });
    expect((await stored.find(callOf("acct_b"), [id])).size).toBe(0);
    store.rows.set(row.id, { ...row, body: row.input, input: row.body });
    expect((await stored.find(callOf(), [id], true)).size).toBe(0);
  });
});

test("a response from before a rotation of the peppers is found and removed", async () => {
  const store = new MemoryResponseStore();
  const before = responseWorld(testPeppers("old"), store);
  await keep(before);
  const { stored, callOf } = responseWorld(testPeppers("new", "old"), store);
  expect((await stored.find(callOf(), [id])).get(id)?.body).toBe(body);
  expect(await stored.remove(callOf(), id)).toBeTrue();
  expect(store.rows.size).toBe(0);
});

test("one that is too large is not stored", async () => {
  const world = responseWorld();
  expect(await keep(world, "x".repeat(1024 * 1024))).toBeFalse();
  expect(await keep(world, "\u20ac".repeat(400 * 1024))).toBeFalse();
  const large = { id, input: "x".repeat(1024 * 1024 + 1) };
  expect(world.stored.hold(world.callOf(), large)).toBeUndefined();
  expect(world.store.rows.size).toBe(0);
});

test("inputs that wait for answers have a bound, and give their room back once", async () => {
  const { stored, callOf } = responseWorld();
  const large = { id, input: "x".repeat(1024 * 1024) };
  const held = Array.from({ length: 64 }, () => stored.hold(callOf(), large));
  expect(held.every((one) => one !== undefined)).toBeTrue();
  expect(stored.hold(callOf(), large)).toBeUndefined();
  held[0]?.release();
  held[0]?.release();
  expect(stored.hold(callOf(), large)).toBeDefined();
  expect(stored.hold(callOf(), large)).toBeUndefined();
});

test("a store that is down stores nothing, and what cannot be read is 503", async () => {
  const world = responseWorld();
  world.store.isDown = true;
  expect(await keep(world)).toBeFalse();
  const { stored, callOf } = world;
  expect(stored.find(callOf(), [id])).rejects.toMatchObject({ status: 503 });
  expect(stored.remove(callOf(), id)).rejects.toMatchObject({ status: 503 });
});

test("a store that is slow is not waited for, and what it stores late is removed", async () => {
  const world = responseWorld();
  const gate = Promise.withResolvers<void>();
  world.store.until = gate.promise;
  expect(await keep(world)).toBeFalse();
  let added = false;
  const put = world.store.rows.set.bind(world.store.rows);
  world.store.rows.set = (...row) => {
    added = true;
    return put(...row);
  };
  gate.resolve();
  await until(() => added && world.store.rows.size === 0);
});

test("responses that are found for one request have a bound together", async () => {
  const world = responseWorld();
  const { stored, callOf } = world;
  const ids = Array.from({ length: 17 }, (_, index) => `resp_${index}`);
  for (const one of ids) {
    await stored.hold(callOf(), { id: one, input })?.keep("x".repeat(1_048_000));
  }
  expect((await stored.find(callOf(), ids.slice(0, 16))).size).toBe(16);
  expect(stored.find(callOf(), ids)).rejects.toMatchObject({ status: 413 });
});
