import { expect, test } from "bun:test";
import fc from "fast-check";
import { ShardedMap } from "./sharded-map.ts";

test("an edit makes a new map and leaves the old one unchanged", () => {
  const none = ShardedMap.empty<number>();
  const edit = none.edit();
  edit.set("aa", 1);
  edit.set("ab", 2);
  const two = edit.finish();
  const next = two.edit();
  next.set("aa", 3);
  next.delete("ab");
  const one = next.finish();
  expect([none.size, two.size, one.size]).toEqual([0, 2, 1]);
  expect([none, two, one].map((map) => map.get("aa"))).toEqual([undefined, 1, 3]);
  expect([none, two, one].map((map) => map.get("ab"))).toEqual([undefined, 2, undefined]);
});

test("an edit without changes returns the same map", () => {
  const map = ShardedMap.empty<number>();
  const edit = map.edit();
  edit.delete("aa");
  expect(edit.finish()).toBe(map);
});

test("after any edits it holds what a plain map holds", () => {
  // Short keys share shards, down to the empty one.
  const key = fc.string({ maxLength: 3, unit: fc.constantFrom("a", "b", "Z", "9") });
  const step = fc.record({ key, value: fc.option(fc.nat(), { nil: undefined }) });
  fc.assert(
    fc.property(fc.array(fc.array(step)), (edits) => {
      const plain = new Map<string, number>();
      let map = ShardedMap.empty<number>();
      for (const steps of edits) {
        const edit = map.edit();
        for (const { key: name, value } of steps) {
          if (value === undefined) edit.delete(name);
          else edit.set(name, value);
          if (value === undefined) plain.delete(name);
          else plain.set(name, value);
          expect(edit.get(name)).toBe(value);
        }
        map = edit.finish();
      }
      expect(map.size).toBe(plain.size);
      expect([...map.keys()].toSorted()).toEqual([...plain.keys()].toSorted());
      expect(sumOf(map.values())).toBe(sumOf(plain.values()));
      for (const [name, value] of plain) expect(map.get(name)).toBe(value);
    }),
  );
});

function sumOf(values: Iterable<number>): number {
  let sum = 0;
  for (const value of values) sum += value;
  return sum;
}
