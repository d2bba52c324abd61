import { expect, test } from "bun:test";
import { virtualClock } from "../../../../../test/support/virtual-clock.ts";
import { targetOf } from "../../../../../test/support/pipeline-fixtures.ts";
import { KeptPlaces } from "./kept-places.ts";

const target = targetOf("up", { pool: "shared" });
const holder = { keyId: "a", capacityClass: "on-demand", provisionedPool: undefined } as const;

function start() {
  const { clock, advance } = virtualClock();
  const givenBack: number[] = [];
  const kept = new KeptPlaces({ clock, giveBack: (id) => void givenBack.push(id) });
  const keep = (id: number) => kept.keep(id, holder, target);
  return { advance, givenBack, kept, keep };
}

test("nothing is kept before control has told what is scarce, nor after it has gone", () => {
  const { kept, keep, givenBack } = start();
  expect(keep(1)).toBe(false);
  kept.scarce([]);
  expect(keep(1)).toBe(true);
  kept.forget();
  expect([kept.take(holder, target), keep(2)]).toEqual([undefined, false]);
  // Control, which counted the place, has ended.
  expect(givenBack).toEqual([]);
});

test("only the same key and class get a kept place, at the same target", () => {
  const { kept, keep } = start();
  kept.scarce([]);
  keep(1);
  expect(kept.take({ ...holder, keyId: "b" }, target)).toBeUndefined();
  expect(kept.take({ ...holder, capacityClass: "spillover" }, target)).toBeUndefined();
  expect(kept.take({ ...holder, provisionedPool: "shared" }, target)).toBeUndefined();
  expect(kept.take(holder, { ...target, id: "up/other" })).toBeUndefined();
  expect(kept.take(holder, { ...target, pool: undefined })).toBeUndefined();
  expect([kept.take(holder, target), kept.take(holder, target)]).toEqual([1, undefined]);
});

test("places that no attempt takes within 50 ms are given back", () => {
  const { advance, kept, keep, givenBack } = start();
  kept.scarce([]);
  keep(1);
  advance(30);
  keep(2);
  advance(20);
  expect(givenBack).toEqual([1]);
  expect(kept.take(holder, target)).toBe(2);
  advance(1_000);
  expect(givenBack).toEqual([1]);
});

test("few are kept, for one key and for all", () => {
  const { kept } = start();
  kept.scarce([]);
  const keepFor = (keyId: string, count: number): number =>
    Array.from({ length: count }, (_, id) => kept.keep(id, { ...holder, keyId }, target)).filter(
      (isKept) => isKept,
    ).length;
  expect(keepFor("a", 20)).toBe(16);
  const others = Array.from({ length: 20 }, (_, index) => keepFor(`key ${index}`, 16));
  expect(others.reduce((sum, count) => sum + count, 0)).toBe(256 - 16);
});

test.each(["pool", "upstream", "target"] as const)(
  "what is kept where a %s is scarce is given back, and none is kept until it is plenty",
  (kind) => {
    const { kept, keep, givenBack } = start();
    kept.scarce([]);
    const bound = [kind, { pool: "shared", upstream: "up", target: "up/m" }[kind]] as const;
    const other = targetOf("elsewhere");
    keep(1);
    kept.keep(2, holder, other);
    kept.scarce([bound]);
    expect(givenBack).toEqual([1]);
    expect(keep(3)).toBe(false);
    kept.plenty([bound]);
    expect(keep(3)).toBe(true);
    expect(kept.take(holder, other)).toBe(2);
  },
);
