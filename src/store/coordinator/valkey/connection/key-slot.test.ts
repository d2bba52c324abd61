import { expect, test } from "bun:test";
import { keySlot } from "./key-slot.ts";

test("slots of keys are those of the cluster specification", () => {
  expect(keySlot("123456789")).toBe(0x31c3);
  expect(keySlot("{user1000}.following")).toBe(keySlot("user1000"));
  expect(keySlot("foo{}{bar}")).not.toBe(keySlot("bar"));
  expect(keySlot("foo{bar}{zap}")).toBe(keySlot("bar"));
});
