import { expect, test } from "bun:test";
import { requestIds } from "./request-ids.ts";

const systemRandom = (target: Uint8Array): Uint8Array => crypto.getRandomValues(target);

/** The ids made at these times, one each. */
function idsAt(times: readonly number[], random = systemRandom): string[] {
  let index = -1;
  const next = requestIds(() => times[(index += 1)] ?? Number.NaN, random);
  return times.map(() => next());
}

test("an id is req_ and 32 hexadecimal digits", () => {
  expect(idsAt([1_750_000_000_000])[0]).toMatch(/^req_[0-9a-f]{32}$/);
});

test("ids sort in the order in which they were made", () => {
  const times = [0, 1, 255, 256, 1_750_000_000_000, 1_750_000_000_001, 2 ** 47];
  const ids = idsAt(times.flatMap((time) => Array.from({ length: 300 }, () => time)));
  expect(ids.toSorted()).toEqual(ids);
});

test("ids of one millisecond differ, also in what nobody can guess", () => {
  const ids = idsAt(Array.from({ length: 1_000 }, () => 1));
  expect(new Set(ids.map((id) => id.slice(-16))).size).toBe(ids.length);
});

test("more ids in a millisecond than the count holds still differ", () => {
  const ids = idsAt(Array.from({ length: 70_000 }, () => 1));
  expect(new Set(ids).size).toBe(ids.length);
});

test("fractions of a millisecond are ignored", () => {
  const noRandom = (target: Uint8Array): Uint8Array => target;
  expect(idsAt([1.9], noRandom)).toEqual(idsAt([1], noRandom));
});
