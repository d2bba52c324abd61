import { describe, expect, test } from "bun:test";
import { AgingMap } from "./aging-map.ts";

describe("aging map", () => {
  test("keeps an entry for its lifetime and drops it within two", () => {
    for (let writtenAt = 0; writtenAt < 25; writtenAt++) {
      const map = new AgingMap<number>(10, 0);
      for (let now = 0; now <= writtenAt; now++) map.advance(now);
      map.set("entry", 1);
      for (let age = 1; age < 10; age++) {
        map.advance(writtenAt + age);
        expect(map.peek("entry")).toBe(1);
      }
      for (let age = 10; age <= 20; age++) map.advance(writtenAt + age);
      expect(map.peek("entry")).toBeUndefined();
      expect(map.size).toBe(0);
    }
  });

  test("keeps an entry for its lifetime when time advances in one step", () => {
    for (let writtenAt = 0; writtenAt < 25; writtenAt++) {
      const map = new AgingMap<number>(10, 0);
      map.advance(writtenAt);
      map.set("entry", 1);
      map.advance(writtenAt + 9);
      expect(map.peek("entry")).toBe(1);
    }
  });

  test("touching keeps an entry alive, peeking does not", () => {
    const map = new AgingMap<string>(10, 0);
    map.set("touched", "a");
    map.set("peeked", "b");
    for (let now = 1; now <= 40; now++) {
      map.advance(now);
      expect(map.touch("touched")).toBe("a");
      map.peek("peeked");
    }
    expect(map.peek("peeked")).toBeUndefined();
    expect(map.size).toBe(1);
  });

  test("a second write replaces an older entry and counts it once", () => {
    const map = new AgingMap<number>(10, 0);
    map.set("entry", 1);
    map.advance(10);
    map.set("entry", 2);
    expect([map.size, map.peek("entry")]).toEqual([1, 2]);
  });

  test("drops everything once two lifetimes have passed, but for what it is to keep", () => {
    const map = new AgingMap<number>(10, 0, (value) => value > 1);
    map.set("kept of old", 2);
    map.set("old", 1);
    map.advance(10);
    map.set("kept of young", 3);
    map.set("young", 1);
    map.advance(29);
    const kept = { "kept of old": 2, "kept of young": 3 };
    expect(Object.fromEntries(map.entries())).toEqual({ ...kept, young: 1 });
    map.advance(60);
    expect(Object.fromEntries(map.entries())).toEqual(kept);
  });
});
