import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { CapacityClass } from "../../../domain/usage/usage.ts";
import { FairQueue, leastCostTokens, quantumTokens, type Waiting } from "./fair-queue.ts";

interface Item extends Waiting {
  readonly name: string;
}

let itemCount = 0;
const oneUnit = (): number => 1;
const anyTurn = { heldBy: () => 0, mayEnter: () => true };

function itemOf(accountId: string, tokens = 500, capacityClass: CapacityClass = "on-demand"): Item {
  itemCount += 1;
  const name = `${accountId} ${itemCount}`;
  return { name, keyId: `key of ${accountId}`, accountId, tokens, capacityClass };
}

function serveAll(queue: FairQueue<Item>): Item[] {
  const served: Item[] = [];
  for (;;) {
    const next = queue.nextProvisioned(anyTurn) ?? queue.firstOpen();
    if (next === undefined) return served;
    served.push(next);
    queue.served(next);
  }
}

const anyClass = fc.constantFrom<CapacityClass>("provisioned", "spillover", "on-demand");
const anyItem = fc.record({
  account: fc.constantFrom("a", "b", "c", "d"),
  tokens: fc.oneof(fc.nat(2_000), fc.constantFrom(0, 250, 1_000, 50_000, 1_000_000)),
  capacityClass: anyClass,
});

describe("fair queue", () => {
  test("serves calls within guarantees before all others, in order of arrival", () => {
    const queue = new FairQueue<Item>(() => 100, oneUnit);
    const items = [
      itemOf("a"),
      itemOf("b", 500, "provisioned"),
      itemOf("a", 500, "spillover"),
      itemOf("a", 9_000, "provisioned"),
    ];
    for (const item of items) queue.add(item);
    const places = serveAll(queue).map((item) => items.indexOf(item));
    expect(places).toEqual([1, 3, 0, 2]);
  });

  test("keeps the calls of an account in order of arrival", () => {
    fc.assert(
      fc.property(fc.array(anyItem, { maxLength: 80 }), (drawn) => {
        const queue = new FairQueue<Item>(() => 1_000, oneUnit);
        const items = drawn.map((one) => itemOf(one.account, one.tokens, one.capacityClass));
        for (const item of items) queue.add(item);
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

  test("gives accounts that always have waiting calls the same share of tokens", () => {
    const sizes = fc.integer({ min: leastCostTokens, max: 20_000 });
    fc.assert(
      fc.property(fc.array(sizes, { minLength: 2, maxLength: 8 }), (accounts) => {
        const queue = new FairQueue<Item>(() => 1_000_000, oneUnit);
        const total = 40 * Math.max(...accounts, quantumTokens);
        for (const [index, tokens] of accounts.entries()) {
          const count = Math.ceil((4 * total) / tokens);
          for (let item = 0; item < count; item++) queue.add(itemOf(String(index), tokens));
        }
        const servedTokens = accounts.map(() => 0);
        while (Math.max(...servedTokens) < total) {
          const item = queue.firstOpen();
          if (item === undefined) throw new Error("the queue is empty");
          queue.served(item);
          servedTokens[Number(item.accountId)] =
            (servedTokens[Number(item.accountId)] ?? 0) + item.tokens;
        }
        // No account is ahead by more than one turn and one call.
        const largestLead = quantumTokens + 2 * Math.max(...accounts);
        expect(total - Math.min(...servedTokens)).toBeLessThanOrEqual(largestLead);
      }),
      { numRuns: 50 },
    );
  });

  test("lets an account of one small call pass a thousand calls of another within a turn", () => {
    const queue = new FairQueue<Item>(() => 2_000, oneUnit);
    for (let count = 0; count < 1_000; count++) queue.add(itemOf("elephant", 5_000));
    queue.firstOpen();
    const mouse = itemOf("mouse", 300);
    queue.add(mouse);
    const served = serveAll(queue);
    expect(served.indexOf(mouse)).toBeLessThanOrEqual(1);
  });

  test("counts the place that a call takes, however small the call is", () => {
    const queue = new FairQueue<Item>(() => 2_000, oneUnit);
    for (let count = 0; count < 100; count++) queue.add(itemOf("tiny", 1));
    for (let count = 0; count < 100; count++) queue.add(itemOf("plain", leastCostTokens));
    const firstHalf = serveAll(queue).slice(0, 100);
    expect(firstHalf.filter(({ accountId }) => accountId === "tiny")).toHaveLength(50 + 2);
  });

  test("keeps the first call until it is served or removed", () => {
    const queue = new FairQueue<Item>(() => 100, oneUnit);
    const large = itemOf("a", 100_000);
    queue.add(large);
    expect(queue.firstOpen()).toBe(large);
    queue.add(itemOf("b", 1));
    expect(queue.firstOpen()).toBe(large);
    queue.remove(large);
    expect(queue.firstOpen()?.accountId).toBe("b");
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
            const item = itemOf(drawn.account, drawn.tokens, drawn.capacityClass);
            const before = { open: openCountOf(queue), provisioned: queue.count("provisioned") };
            waiting.add(item);
            const displaced = queue.add(item);
            if (displaced !== undefined) expect(waiting.delete(displaced)).toBe(true);
            expect(openCountOf(queue)).toBeLessThanOrEqual(Math.max(limit, before.open));
            const provisioned = Math.max(limit, before.provisioned);
            expect(queue.count("provisioned")).toBeLessThanOrEqual(provisioned);
            if (isTaken) {
              const next = queue.nextProvisioned(anyTurn) ?? queue.firstOpen();
              if (next !== undefined) {
                queue.served(next);
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
    const spilled = [itemOf("a", 500, "spillover"), itemOf("b", 500, "spillover")];
    for (const item of [itemOf("a"), ...spilled, itemOf("a")]) queue.add(item);
    expect(queue.add(itemOf("b"))).toBe(spilled[0] ?? itemOf("none"));
    const youngestOfA = itemOf("a");
    expect(queue.add(youngestOfA)).toBe(spilled[1] ?? itemOf("none"));
    expect(queue.add(itemOf("c"))).toBe(youngestOfA);
    const late = itemOf("a");
    expect(queue.add(late)).toBe(late);
  });

  test("of calls on demand takes no spilled one, and a guarantee displaces no other class", () => {
    const queue = new FairQueue<Item>(() => 2, oneUnit);
    const spilled = itemOf("b", 500, "spillover");
    for (const item of [itemOf("a"), itemOf("a")]) queue.add(item);
    expect(queue.add(spilled)).toBe(spilled);
    const guaranteed = [1, 2, 3].map(() => itemOf("b", 500, "provisioned"));
    expect(guaranteed.map((item) => queue.add(item))).toEqual([
      undefined,
      undefined,
      guaranteed[2],
    ]);
    expect(queue.count("on-demand")).toBe(2);
  });

  test("of spilled calls gives an account without any its share", () => {
    const queue = new FairQueue<Item>(() => 3, oneUnit);
    const many = [1, 2, 3].map(() => itemOf("a", 500, "spillover"));
    for (const item of many) queue.add(item);
    expect(queue.add(itemOf("b", 500, "spillover"))).toBe(many[2] ?? itemOf("none"));
    const another = itemOf("a", 500, "spillover");
    expect(queue.add(another)).toBe(another);
  });

  test("with a limit of 0 lets no call wait", () => {
    const queue = new FairQueue<Item>(() => 0, oneUnit);
    for (const capacityClass of ["provisioned", "spillover", "on-demand"] as const) {
      const item = itemOf("a", 500, capacityClass);
      expect(queue.add(item)).toBe(item);
    }
  });
});

function isProvisioned({ capacityClass }: Item): boolean {
  return capacityClass === "provisioned";
}

function openCountOf(queue: FairQueue<Item>): number {
  return queue.count("spillover") + queue.count("on-demand");
}
