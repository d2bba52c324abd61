import { expect, test } from "bun:test";
import { pepperOf, testPeppers } from "../../../test/support/test-peppers.ts";
import { Peppers } from "./peppers.ts";

test("each pepper has its own mark, which does not reveal it", () => {
  const { all, first } = testPeppers("one", "other");
  const [one, other] = all;
  expect(first).toBe(one ?? first);
  expect(one?.mark).toMatch(/^[0-9a-f]{64}$/);
  expect(one?.mark).not.toBe(other?.mark);
  expect(new Peppers(pepperOf("other")).first.mark).toBe(other?.mark ?? "");
});

test("the first pepper makes digests, and each is found by its mark", () => {
  const peppers = testPeppers("new", "old");
  const old = testPeppers("old").first;
  expect(peppers.first.digest("text")).toEqual(testPeppers("new").first.digest("text"));
  expect(peppers.find(old.mark)?.digest("text")).toEqual(old.digest("text"));
  expect(peppers.find(testPeppers("gone").first.mark)).toBeUndefined();
});
