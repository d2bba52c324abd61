import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { CapacityClass } from "../../domain/usage/usage.ts";
import { FairQueue, type Waiting } from "./fair-queue.ts";

interface Item extends Waiting {
  readonly name: string;
}

let itemCount = 0;
const oneUnit = (): number => 1;
const anyCall = (): boolean => true;

function itemOf(accountId: string, capacityClass: CapacityClass = "on-demand"): Item {
  itemCount += 1;
  const name = `${accountId} ${itemCount}`;
  return { name, keyId: `key of ${accountId}`, accountId, capacityClass };
}

function serveAll(queue: FairQueue<Item>): Item[] {
  const served: Item[] = [];
  for (;;) {
    const next = nextOf(queue);
    if (next === undefined) return served;
    served.push(next);
    queue.laneOf(next).served(next);
  }
}

function nextOf({ provisioned, open }: FairQueue<Item>): Item | undefined {
  return provisioned.findLeast(() => 0, anyCall) ?? open.findAny(anyCall);
}

function add(queue: FairQueue<Item>, item: Item): Item | undefined {
  return queue.laneOf(item).add(item);
}

const anyClass = fc.constantFrom<CapacityClass>("provisioned", "spillover", "on-demand");
const anyItem = fc.record({
  account: fc.constantFrom("a", "b", "c", "d"),
  capacityClass: anyClass,
});

describe("fair queue", () => {
  test("serves calls within guarantees before all others, in order of arrival", () => {
    const queue = new FairQueue<Item>(() => 100, oneUnit);
    const items = [
      itemOf("a"),
      itemOf("b", "provisioned"),
      itemOf("a", "spillover"),
      itemOf("a", "provisioned"),
    ];
    for (const item of items) add(queue, item);
    const places = serveAll(queue).map((item) => items.indexOf(item));
    expect(places).toEqual([1, 3, 0, 2]);
  });

  test("keeps the calls of an account in order of arrival", () => {
    fc.assert(
      fc.property(fc.array(anyItem, { maxLength: 80 }), (drawn) => {
        const queue = new FairQueue<Item>(() => 1_000, oneUnit);
        const items = drawn.map((one) => itemOf(one.account, one.capacityClass));
        for (const item of items) add(queue, item);
        const served = serveAll(queue);
        expect(served).toHaveLength(items.length);
        for (const lane of [isProvisioned, (item: Item) => !isProvisioned(item)]) {
          for (const account of ["a", "b", "c", "d"]) {
            const isOfAccount = (item: Item) => lane(item) && item.accountId === account;
            expect(served.filter(isOfAccount)).toEqual(items.filter(isOfAccount));
          }
        }
      }),
    );
  });

  test("lets accounts take turns, however many calls of one wait", () => {
    const queue = new FairQueue<Item>(() => 2_000, oneUnit);
    for (let count = 0; count < 1_000; count++) add(queue, itemOf("elephant"));
    const mice = [1, 2, 3].map(() => itemOf("mouse"));
    for (const mouse of mice) add(queue, mouse);
    const served = serveAll(queue);
    expect(mice.map((mouse) => served.indexOf(mouse))).toEqual([1, 3, 5]);
  });

  test("keeps the turn of an account whose call leaves, and of one that is passed", () => {
    const queue = new FairQueue<Item>(() => 100, oneUnit);
    const [first, second, other] = [itemOf("a"), itemOf("a"), itemOf("b")];
    for (const item of [first, second, other]) add(queue, item);
    queue.open.remove(first);
    expect(queue.open.findAny(anyCall)).toBe(second);
    queue.open.served(other);
    expect(queue.open.findAny(anyCall)).toBe(second);
  });

  test("never has more than its limit in a lane, and loses no call", () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ item: anyItem, isTaken: fc.boolean(), limit: fc.nat(6) }), {
          maxLength: 100,
        }),
        (steps) => {
          let limit = 5;
          const queue = new FairQueue<Item>(() => limit, oneUnit);
          const waiting = new Set<Item>();
          for (const { item: drawn, isTaken, limit: nextLimit } of steps) {
            // Lowering the limit displaces no call.
            limit = Math.max(limit - 1, nextLimit);
            const item = itemOf(drawn.account, drawn.capacityClass);
            const before = { open: openCountOf(queue), provisioned: queue.count("provisioned") };
            waiting.add(item);
            const displaced = add(queue, item);
            if (displaced !== undefined) expect(waiting.delete(displaced)).toBe(true);
            expect(openCountOf(queue)).toBeLessThanOrEqual(Math.max(limit, before.open));
            const provisioned = Math.max(limit, before.provisioned);
            expect(queue.count("provisioned")).toBeLessThanOrEqual(provisioned);
            if (isTaken) {
              const next = nextOf(queue);
              if (next !== undefined) {
                queue.laneOf(next).served(next);
                expect(waiting.delete(next)).toBe(true);
              }
            }
            for (const capacityClass of ["provisioned", "spillover", "on-demand"] as const) {
              const ofClass = [...waiting].filter((one) => one.capacityClass === capacityClass);
              expect(queue.count(capacityClass)).toBe(ofClass.length);
            }
          }
          expect(new Set(serveAll(queue))).toEqual(waiting);
        },
      ),
    );
  });
});

describe("a full queue", () => {
  test("displaces spilled calls first, then calls of the account with most waiting", () => {
    const queue = new FairQueue<Item>(() => 4, oneUnit);
    const spilled = [itemOf("a", "spillover"), itemOf("b", "spillover")];
    for (const item of [itemOf("a"), ...spilled, itemOf("a")]) add(queue, item);
    expect(add(queue, itemOf("b"))).toBe(spilled[0] ?? itemOf("none"));
    const youngestOfA = itemOf("a");
    expect(add(queue, youngestOfA)).toBe(spilled[1] ?? itemOf("none"));
    expect(add(queue, itemOf("c"))).toBe(youngestOfA);
    const late = itemOf("a");
    expect(add(queue, late)).toBe(late);
  });

  test("of calls on demand takes no spilled one, and a guarantee displaces no other class", () => {
    const queue = new FairQueue<Item>(() => 2, oneUnit);
    const spilled = itemOf("b", "spillover");
    for (const item of [itemOf("a"), itemOf("a")]) add(queue, item);
    expect(add(queue, spilled)).toBe(spilled);
    const guaranteed = [1, 2, 3].map(() => itemOf("b", "provisioned"));
    expect(guaranteed.map((item) => add(queue, item))).toEqual([
      undefined,
      undefined,
      guaranteed[2],
    ]);
    expect(queue.count("on-demand")).toBe(2);
  });

  test("of spilled calls gives an account without any its share", () => {
    const queue = new FairQueue<Item>(() => 3, oneUnit);
    const many = [1, 2, 3].map(() => itemOf("a", "spillover"));
    for (const item of many) add(queue, item);
    expect(add(queue, itemOf("b", "spillover"))).toBe(many[2] ?? itemOf("none"));
    const another = itemOf("a", "spillover");
    expect(add(queue, another)).toBe(another);
  });

  test("with a limit of 0 lets no call wait", () => {
    const queue = new FairQueue<Item>(() => 0, oneUnit);
    for (const capacityClass of ["provisioned", "spillover", "on-demand"] as const) {
      const item = itemOf("a", capacityClass);
      expect(add(queue, item)).toBe(item);
    }
  });
});

function isProvisioned({ capacityClass }: Item): boolean {
  return capacityClass === "provisioned";
}

function openCountOf(queue: FairQueue<Item>): number {
  return queue.count("spillover") + queue.count("on-demand");
}

describe("calls within guarantees", () => {
  const units: Readonly<Record<string, number>> = { "key of small": 1, "key of large": 10 };
  const unitsOf = (keyId: string): number => units[keyId] ?? 0;

  function laneOf(limit = 1_000) {
    return new FairQueue<Item>(() => limit, unitsOf).provisioned;
  }

  function fill(lane: ReturnType<typeof laneOf>, account: string, count: number): Item[] {
    const items = Array.from({ length: count }, () => itemOf(account, "provisioned"));
    for (const item of items) lane.add(item);
    return items;
  }

  test("get places by the units of their keys, not by waiting calls or order of arrival", () => {
    const lane = laneOf();
    fill(lane, "small", 400);
    fill(lane, "large", 100);
    const held = new Map<string, number>();
    for (let place = 0; place < 55; place += 1) {
      const next = lane.findLeast((keyId) => held.get(keyId) ?? 0, anyCall);
      if (next === undefined) throw new Error("nobody waits");
      lane.served(next);
      held.set(next.keyId, (held.get(next.keyId) ?? 0) + 1);
    }
    expect(held.get("key of large")).toBe(50);
  });

  test("take turns by key, so that one place is shared as well", () => {
    const lane = laneOf();
    fill(lane, "small", 400);
    fill(lane, "large", 3);
    const turns: string[] = [];
    for (let turn = 0; turn < 4; turn += 1) {
      const next = lane.findLeast(() => 0, anyCall);
      if (next === undefined) throw new Error("nobody waits");
      lane.served(next);
      turns.push(next.accountId);
    }
    expect(turns).toEqual(["small", "large", "small", "large"]);
  });

  test("that may not enter delay no other key, and keep their own order", () => {
    const lane = laneOf();
    const [first, second] = fill(lane, "large", 2);
    const [other] = fill(lane, "small", 2);
    expect(
      lane.findLeast(
        () => 0,
        ({ accountId }) => accountId === "small",
      ),
    ).toBe(other);
    expect(
      lane.findLeast(
        () => 0,
        (item) => item === second,
      ),
    ).toBeUndefined();
    expect(lane.findLeast(() => 0, anyCall)).toBe(first);
  });

  test("displace the youngest of the key with most waiting for its units", () => {
    const lane = laneOf(5);
    const many = fill(lane, "small", 5);
    expect(lane.add(itemOf("large", "provisioned"))).toBe(many[4]);
    for (const account of ["small", "none"]) {
      const another = itemOf(account, "provisioned");
      expect(lane.add(another)).toBe(another);
    }
    expect(lane.size).toBe(5);
  });
});
