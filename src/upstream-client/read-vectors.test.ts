import { expect, test } from "bun:test";
import { readVectors } from "./read-vectors.ts";

const dimensions = 4_096;
const count = 40;
const vector = Array.from({ length: dimensions }, (_, index) => Math.fround(index / 7));
const base64 = Buffer.from(new Float32Array(vector).buffer).toString("base64");

function bodyOf(embedding: unknown): Uint8Array {
  const data = Array.from({ length: count }, (_, index) => ({ index, embedding }));
  return new TextEncoder().encode(JSON.stringify({ data }));
}

/** An answer that arrives in one piece. */
function answerOf(body: Uint8Array) {
  return {
    async readPieces(_: number, read: (piece: Uint8Array) => void | Promise<void>) {
      await read(body);
    },
  };
}

/** How often others had their turn during the work. */
async function turnsDuring(work: Promise<unknown>): Promise<number> {
  let turns = 0;
  let isOver = false;
  const count = (): void => {
    turns += 1;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  await work;
  isOver = true;
  return turns;
}

test.each([
  ["numbers", vector, 128],
  ["base64", base64, 512],
])("an answer of %s is read over many turns of the event loop", async (_, embedding, mostKiB) => {
  const body = bodyOf(embedding);
  const reading = Promise.resolve(readVectors(answerOf(body), Infinity, { inputs: count }));
  expect(await turnsDuring(reading)).toBeGreaterThan(body.byteLength / (mostKiB * 1024));
  const { vectors } = await reading;
  expect(vectors.map(({ length }) => length)).toEqual(vectors.map(() => dimensions));
  expect(Array.from(vectors.at(-1)?.numbers ?? [])).toEqual(vector);
  expect(vectors).toHaveLength(count);
});

test("the memory of all vectors of a call is taken before more than a slice is read", async () => {
  const room = Promise.withResolvers<void>();
  const asked: number[] = [];
  const memory = {
    reserve: (bytes: number): Promise<void> => {
      asked.push(bytes);
      return room.promise;
    },
  };
  const limits = { inputs: count, callInputs: 3 * count, memory };
  let isOver = false;
  const reading = Promise.resolve(readVectors(answerOf(bodyOf(base64)), Infinity, limits));
  void reading.then(() => (isOver = true));
  for (let turns = 0; turns < 100; turns += 1) await new Promise((go) => setImmediate(go));
  expect([isOver, asked]).toEqual([false, [3 * count * base64.length]]);
  room.resolve();
  expect((await reading).vectors).toHaveLength(count);
  expect(asked).toHaveLength(1);
});
