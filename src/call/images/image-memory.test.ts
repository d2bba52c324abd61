import { expect, test } from "bun:test";
import { ImageMemory } from "./image-memory.ts";

const forever = new AbortController().signal;
/** Longer than any test. */
const longMs = 60_000;

test("shares are granted in order, even if a later one would fit at once", async () => {
  const memory = new ImageMemory(100);
  const first = await memory.take(60, forever, longMs);
  const order: string[] = [];
  const large = memory.take(80, forever, longMs).then((share) => {
    order.push("large");
    return share;
  });
  const small = memory.take(20, forever, longMs).then((share) => {
    order.push("small");
    return share;
  });
  expect(memory.heldBytes).toBe(60);
  first?.release();
  const shares = [await large, await small];
  expect(order).toEqual(["large", "small"]);
  expect(memory.heldBytes).toBe(100);
  for (const share of shares) share?.release();
  expect(memory.heldBytes).toBe(0);
});

test("shrinking makes room, and a released share no longer counts", async () => {
  const memory = new ImageMemory(100);
  const share = await memory.take(100, forever, longMs);
  const waiting = memory.take(70, forever, longMs);
  share?.shrinkTo(30);
  const other = await waiting;
  expect(memory.heldBytes).toBe(100);
  share?.release();
  share?.release();
  share?.shrinkTo(10);
  expect(memory.heldBytes).toBe(70);
  other?.release();
  expect(memory.heldBytes).toBe(0);
});

test("a request larger than the limit is granted alone", async () => {
  const memory = new ImageMemory(100);
  const small = await memory.take(1, forever, longMs);
  const huge = memory.take(1_000, forever, longMs);
  small?.release();
  const share = await huge;
  expect(memory.heldBytes).toBe(100);
  share?.release();
  expect(memory.heldBytes).toBe(0);
});

test("a wait that times out or is aborted lets the next one in", async () => {
  const memory = new ImageMemory(100);
  const share = await memory.take(90, forever, longMs);
  const leaving = new AbortController();
  const left = memory.take(50, leaving.signal, longMs);
  const late = memory.take(50, forever, 1);
  const next = memory.take(10, forever, longMs);
  leaving.abort();
  expect([await left, await late]).toEqual([undefined, undefined]);
  expect(await memory.take(1, AbortSignal.abort(), longMs)).toBeUndefined();
  (await next)?.release();
  share?.release();
  expect(memory.heldBytes).toBe(0);
});
