import { expect, test } from "bun:test";
import { EmbeddingVector } from "../../domain/chat/embedding.ts";
import { EmbeddingText } from "./embedding-text.ts";

const dimensions = 2_000;

const newVector = (): EmbeddingVector =>
  new EmbeddingVector(new Float32Array(dimensions).fill(0.123));

/** Memory, and the bytes that were held after each change. */
function newMemory() {
  const held: number[] = [];
  return {
    held,
    reserve: () => undefined,
    shrinkTo: (bytes: number): void => void held.push(bytes),
    release: (): void => void held.push(0),
  };
}

test.each(["float", "base64"] as const)(
  "%s vectors are written in slices, one in each turn, and given back as they are written",
  async (format) => {
    const vectors = Array.from({ length: 400 }, newVector);
    const memory = newMemory();
    const text = new EmbeddingText({ vectors, format, end: "]}", memory });
    const slices: string[] = [];
    while (!text.isOver) {
      const slice = text.take();
      if (slice !== undefined) slices.push(slice);
      expect(text.take()).toBeUndefined();
      if (!text.isOver) await new Promise<void>((ready) => text.whenReady(ready));
    }
    text.cancel();
    expect(slices.length).toBeGreaterThan(10);
    expect(Math.max(...slices.map(({ length }) => length))).toBeLessThan(512 * 1024);
    expect(memory.held[0]).toBe(400 * dimensions * 4);
    expect(memory.held).toEqual(memory.held.toSorted((one, other) => other - one));
    expect(memory.held.at(-1)).toBe(0);
    const { data } = JSON.parse(slices.join("")) as { data: readonly object[] };
    expect(data).toHaveLength(400);
  },
);
