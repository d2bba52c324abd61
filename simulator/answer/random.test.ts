import fc from "fast-check";
import { expect, test } from "bun:test";
import { textVector } from "./random.ts";

function similarity(one: string, other: string): number {
  const [first, second] = [textVector(one, 1024), textVector(other, 1024)];
  return first.reduce((sum, value, place) => sum + value * (second[place] ?? 0), 0);
}

test("texts that share words or spellings are closer than texts that do not", () => {
  const close = similarity("The cat sat on the warm mat", "A cat was sitting on the mat");
  const far = similarity("The cat sat on the warm mat", "Quarterly revenue grew in Europe");
  expect(close).toBeGreaterThan(far + 0.2);
  expect(similarity("gardening", "gardener")).toBeGreaterThan(similarity("gardening", "submarine"));
});

test("every text has one unit vector of the requested size", () => {
  fc.assert(
    fc.property(fc.string(), fc.integer({ min: 1, max: 300 }), (text, dimensions) => {
      const vector = textVector(text, dimensions);
      expect(vector.length).toBe(dimensions);
      expect(Math.hypot(...vector)).toBeCloseTo(1, 4);
      expect(textVector(text, dimensions)).toEqual(vector);
    }),
  );
});
