import { expect, test } from "bun:test";
import { ManualClock } from "../../../test/support/manual-clock.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { MemoryGate, type MemoryHold } from "./memory-gate.ts";

const limits = { allBytes: 100, ownBytes: 60, waitMs: 1_000, queue: 4 };
const full = (): GatewayError => new GatewayError("model_unavailable", { message: "full" });

function start() {
  const clock = new ManualClock();
  const memory = new MemoryGate(clock);
  const granted: string[] = [];
  const open = (name: string, signal = new AbortController().signal): MemoryHold =>
    memory.hold({ name, account: name, request: { signal }, full }, limits);
  /** Asks and notes when it was given. */
  const grow = (hold: MemoryHold, bytes: number, label: string): Promise<unknown> => {
    const growing = hold.reserve(bytes);
    if (growing === undefined) {
      granted.push(label);
      return Promise.resolve();
    }
    return growing.then(
      () => granted.push(label),
      (error: unknown) => error,
    );
  };
  return { clock, memory, granted, open, grow };
}

const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test("memory that is free is taken at once; memory that is given back admits the next", async () => {
  const { memory, granted, open, grow } = start();
  const [one, two, three] = [open("a"), open("b"), open("c")];
  void grow(one, 60, "one");
  void grow(two, 40, "two");
  void grow(three, 1, "three");
  expect(granted).toEqual(["one", "two"]);
  two.becomes(30);
  await settle();
  expect(granted).toEqual(["one", "two", "three"]);
  expect(memory.heldBytes).toBe(91);
  for (const hold of [one, two, three]) hold.release();
  expect(memory.heldBytes).toBe(0);
});

test("a key at its own limit does not hold up other keys", async () => {
  const { granted, open, grow } = start();
  const first = open("a");
  void grow(first, 60, "a1");
  void grow(open("a"), 10, "a2");
  void grow(open("b"), 40, "b1");
  expect(granted).toEqual(["a1", "b1"]);
  first.release();
  await settle();
  expect(granted).toEqual(["a1", "b1", "a2"]);
});

test("keys take turns, and a later body does not overtake", async () => {
  const { granted, open, grow } = start();
  const [one, two] = [open("x"), open("y")];
  void grow(one, 50, "x");
  void grow(two, 50, "y");
  for (const label of ["a1", "a2", "b1"]) void grow(open(label.slice(0, 1)), 50, label);
  void grow(open("c"), 1, "c1");
  expect(granted).toEqual(["x", "y"]);
  one.release();
  await settle();
  expect(granted).toEqual(["x", "y", "a1"]);
  two.release();
  await settle();
  expect(granted).toEqual(["x", "y", "a1", "b1"]);
});

test("a body that waits too long, or finds the queue full, is refused as its owner says", async () => {
  const { clock, memory, open, grow } = start();
  void grow(open("x"), 60, "x");
  void grow(open("y"), 40, "y");
  const waits = ["a", "b", "c", "d"].map((name) => grow(open(name), 10, name));
  const refused = await grow(open("e"), 10, "e");
  expect(refused).toMatchObject({ status: 503, message: "full" });
  clock.advance(1_000);
  for (const error of await Promise.all(waits)) {
    expect(error).toMatchObject({ status: 503, code: "model_unavailable" });
  }
  expect(memory.heldBytes).toBe(100);
});

test("in a full queue the newest body of the owner with most of them makes room for others", async () => {
  const { granted, open, grow } = start();
  const one = open("x");
  void grow(one, 60, "x");
  void grow(open("y"), 40, "y");
  const waits = [1, 2, 3, 4].map((number) => grow(open("many"), 10, `many ${number}`));
  const other = grow(open("other"), 10, "other");
  expect(await waits[3]).toMatchObject({ status: 503, message: "full" });
  one.release();
  await other;
  expect(granted).toContain("other");
});

test("a body that is given up while it waits holds nothing afterwards", async () => {
  const { memory, granted, open, grow } = start();
  const first = open("x");
  void grow(first, 60, "x1");
  void grow(open("y"), 40, "y1");
  const given = open("a");
  void grow(given, 10, "a1");
  given.release();
  const leaver = new AbortController();
  const left = grow(open("b", leaver.signal), 10, "b1");
  const reason = new Error("left");
  leaver.abort(reason);
  expect(await left).toBe(reason);
  first.release();
  await settle();
  expect(granted).toEqual(["x1", "y1", "a1"]);
  expect(memory.heldBytes).toBe(40);
});

test("smaller bodies pass one that waits, up to its own size, and no more", async () => {
  const { granted, open, grow } = start();
  const one = open("x");
  void grow(one, 50, "x");
  void grow(open("y"), 10, "y");
  // 40 are free, and it wants 50.
  void grow(open("a"), 50, "a");
  void grow(open("b"), 30, "b");
  void grow(open("c"), 10, "c");
  expect(granted).toEqual(["x", "y", "b", "c"]);
  void grow(open("d"), 20, "d");
  one.release();
  await settle();
  expect(granted).toEqual(["x", "y", "b", "c", "a"]);
});

test("bodies that pass one that waits are counted, and it does not wait for ever", async () => {
  const { granted, open, grow } = start();
  void grow(open("x"), 60, "x");
  void grow(open("a"), 50, "a");
  for (let passed = 0; passed < 4; passed += 1) {
    const small = open("b");
    void grow(small, 20, `b${passed}`);
    if (granted.includes(`b${passed}`)) small.release();
  }
  expect(granted).toEqual(["x", "b0", "b1"]);
});

test("memory is reserved once: a body never waits for more while it holds something", () => {
  const { memory, open, grow } = start();
  const hold = open("a");
  void grow(hold, 40, "a");
  void grow(hold, 60, "a");
  expect(memory.heldBytes).toBe(40);
});

test("a body that takes more than was reserved is counted so, and holds up the next", async () => {
  const { memory, granted, open, grow } = start();
  const hold = open("a");
  void grow(hold, 30, "first");
  hold.becomes(90);
  void grow(open("a"), 1, "same owner");
  void grow(open("b"), 20, "other owner");
  expect([memory.heldBytes, granted]).toEqual([90, ["first"]]);
  hold.becomes(50);
  await settle();
  expect(granted).toEqual(["first", "same owner", "other owner"]);
  const small = open("c");
  small.becomes(1_000);
  expect(memory.heldBytes).toBe(71);
});

test("a body is counted until the request is answered and nobody keeps it", () => {
  const { memory, open, grow } = start();
  const hold = open("a");
  void grow(hold, 40, "a");
  const ends = [hold.keep(), hold.keep()];
  hold.release();
  for (const end of [ends[0], ends[0]]) end?.();
  expect(memory.heldBytes).toBe(40);
  ends[1]?.();
  expect(memory.heldBytes).toBe(0);
});

test("the owners of one account together leave a half to others", async () => {
  const { granted, memory } = start();
  const leaving = new AbortController();
  const { signal } = leaving;
  const ask = (name: string, account: string, bytes: number): void | Promise<void> => {
    const taking = memory.hold({ name, account, request: { signal }, full }, limits).reserve(bytes);
    if (taking === undefined) granted.push(name);
    return taking;
  };
  void ask("a1", "a", 30);
  void ask("a2", "a", 30);
  const waiting = ask("a3", "a", 1);
  void ask("b1", "b", 40);
  expect(granted).toEqual(["a1", "a2", "b1"]);
  leaving.abort("left");
  expect(await Promise.resolve(waiting).catch((reason: unknown) => reason)).toBe("left");
});
