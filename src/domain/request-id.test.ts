import { expect, test } from "bun:test";
import { createRequestId } from "./request-id.ts";

const systemRandom = (target: Uint8Array): Uint8Array => crypto.getRandomValues(target);

test("an id is req_ and 32 hexadecimal digits", () => {
  expect(createRequestId(1_750_000_000_000, systemRandom)).toMatch(/^req_[0-9a-f]{32}$/);
});

test("ids of later milliseconds sort after earlier ones", () => {
  const times = [0, 1, 255, 256, 1_750_000_000_000, 1_750_000_000_001, 2 ** 47];
  const ids = times.map((time) => createRequestId(time, systemRandom));
  expect(ids.toSorted()).toEqual(ids);
});

test("ids of one millisecond differ", () => {
  const ids = Array.from({ length: 1_000 }, () => createRequestId(1, systemRandom));
  expect(new Set(ids).size).toBe(ids.length);
});

test("fractions of a millisecond are ignored", () => {
  const noRandom = (target: Uint8Array): Uint8Array => target;
  expect(createRequestId(1.9, noRandom)).toBe(createRequestId(1, noRandom));
});
