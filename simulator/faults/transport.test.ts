import fc from "fast-check";
import { expect, test } from "bun:test";
import { type Frame, isFrame, type Step } from "../reply.ts";
import { splitWrites } from "./transport.ts";

const frames = (count: number): Frame[] =>
  Array.from({ length: count }, (_, index) => ({
    data: `<frame ${index} ${"x".repeat((index * 37) % 200)}>`,
    tokens: index,
    hasUsage: index === count - 1,
  }));

const textOf = (steps: readonly Step[]): string =>
  Buffer.concat(steps.filter(isFrame).map(({ data }) => Buffer.from(data))).toString();

test("cuts lose no byte, token or usage", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 40 }), fc.nat(), (count, seed) => {
      const given = frames(count);
      const writes = [...splitWrites(given, seed)].filter(isFrame);
      expect(textOf(writes)).toBe(textOf(given));
      const tokens = writes.reduce((total, write) => total + write.tokens, 0);
      expect(tokens).toBe((count * (count - 1)) / 2);
      expect(writes.at(-1)?.hasUsage).toBe(true);
    }),
    { numRuns: 100 },
  );
});

test("some writes are a single byte, some end inside a frame", () => {
  const texts = [...splitWrites(frames(60), 1)].map((step) => textOf([step]));
  expect(texts.some((text) => text.length === 1)).toBe(true);
  expect(texts.some((text) => text.length > 1 && !text.endsWith(">"))).toBe(true);
});

test("the same seed cuts at the same places, another seed at others", () => {
  const sizes = (seed: number): number[] =>
    [...splitWrites(frames(20), seed)].map((step) => textOf([step]).length);
  expect(sizes(7)).toEqual(sizes(7));
  expect(sizes(7)).not.toEqual(sizes(8));
});

test("everything before a pause is written before it", () => {
  const [first, second] = frames(2);
  if (first === undefined || second === undefined) throw new Error("no frames");
  const steps = [...splitWrites([first, { pauseMs: 5 }, second], 3)];
  const pause = steps.findIndex((step) => !isFrame(step));
  expect(textOf(steps.slice(0, pause))).toBe(textOf([first]));
  expect(textOf(steps.slice(pause))).toBe(textOf([second]));
});
