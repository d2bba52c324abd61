import { expect, test } from "bun:test";
import fc from "fast-check";
import { ProvisionedLane } from "./provisioned-lane.ts";

interface Item {
  readonly keyId: string;
  readonly number: number;
}

const units: Readonly<Record<string, number>> = { small: 1, large: 10, none: 0 };

function laneOf(): ProvisionedLane<Item> {
  return new ProvisionedLane((keyId) => units[keyId] ?? 0);
}

function fill(lane: ProvisionedLane<Item>, keyId: string, count: number, limit = 1_000): Item[] {
  const items = Array.from({ length: count }, (_, number) => ({ keyId, number }));
  for (const item of items) lane.add(item, limit);
  return items;
}

/** The keys that are served when so many places become free one by one and none is given back. */
function served(lane: ProvisionedLane<Item>, places: number): string[] {
  const held = new Map<string, number>();
  const keys: string[] = [];
  for (let place = 0; place < places; place += 1) {
    const next = lane.next({ heldBy: (keyId) => held.get(keyId) ?? 0, mayEnter: () => true });
    if (next === undefined) break;
    lane.remove(next);
    held.set(next.keyId, (held.get(next.keyId) ?? 0) + 1);
    keys.push(next.keyId);
  }
  return keys;
}

test("keys get places by their units, not by waiting calls or order of arrival", () => {
  const lane = laneOf();
  fill(lane, "small", 400);
  fill(lane, "large", 100);
  const keys = served(lane, 55);
  expect(keys.filter((keyId) => keyId === "large")).toHaveLength(50);
});

test("keys with as many places take turns, so that one place is shared as well", () => {
  const lane = laneOf();
  fill(lane, "small", 400);
  fill(lane, "large", 3);
  const turns: string[] = [];
  for (let turn = 0; turn < 6; turn += 1) {
    const next = lane.next({ heldBy: () => 0, mayEnter: () => true });
    if (next === undefined) throw new Error("nobody waits");
    lane.remove(next);
    turns.push(next.keyId);
  }
  expect(turns).toEqual(["small", "large", "small", "large", "small", "large"]);
});

test("a call that may not enter delays no other key, and keeps its own order", () => {
  const lane = laneOf();
  const [first] = fill(lane, "large", 2);
  const [other] = fill(lane, "small", 2);
  const heldBy = (): number => 0;
  expect(lane.next({ heldBy, mayEnter: ({ keyId }) => keyId === "small" })).toBe(other);
  expect(lane.next({ heldBy, mayEnter: ({ number }) => number === 1 })).toBeUndefined();
  expect(lane.next({ heldBy, mayEnter: () => true })).toBe(first);
});

test("a full lane displaces the youngest call of the key with most waiting for its units", () => {
  const lane = laneOf();
  const many = fill(lane, "small", 5);
  const [late] = [{ keyId: "large", number: 0 }];
  expect(late && lane.add(late, 5)).toBe(many[4]);
  const another = { keyId: "small", number: 9 };
  expect(lane.add(another, 5)).toBe(another);
  const without = { keyId: "none", number: 0 };
  expect(lane.add(without, 5)).toBe(without);
  expect(lane.size).toBe(5);
});

test("no call is lost or counted twice in any order of events", () => {
  const step = fc.record({
    keyId: fc.constantFrom("small", "large", "none"),
    does: fc.constantFrom("add", "add", "next", "leave"),
    which: fc.nat(20),
  });
  fc.assert(
    fc.property(
      fc.array(step, { maxLength: 80 }),
      fc.integer({ min: 0, max: 9 }),
      (steps, limit) => {
        const lane = laneOf();
        const waiting = new Set<Item>();
        for (const [number, { keyId, does, which }] of steps.entries()) {
          const item = { keyId, number };
          if (does === "add") {
            waiting.add(item);
            const displaced = lane.add(item, limit);
            if (displaced !== undefined) expect(waiting.delete(displaced)).toBe(true);
          }
          const next = lane.next({ heldBy: () => 0, mayEnter: () => true });
          const gone = does === "next" ? next : does === "leave" ? [...waiting][which] : undefined;
          if (gone !== undefined) {
            expect([lane.remove(gone), lane.remove(gone)]).toEqual([true, false]);
            waiting.delete(gone);
          }
          expect(lane.size).toBe(waiting.size);
          for (const each of Object.keys(units)) {
            expect(lane.has(each)).toBe([...waiting].some((one) => one.keyId === each));
          }
        }
      },
    ),
  );
});
