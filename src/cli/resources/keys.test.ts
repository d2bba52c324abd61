import { expect, test } from "bun:test";
import { generateApiKey } from "../../domain/keys/api-key.ts";
import { findKeys } from "./keys.ts";

const newKey = (): string => generateApiKey((target) => crypto.getRandomValues(target)).text;

async function* inPieces(text: string, sizeBytes: number): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(text);
  for (let start = 0; start < bytes.length; start += sizeBytes) {
    yield bytes.subarray(start, start + sizeBytes);
  }
}

test.each([1, 7, 64, 65, 200, 100_000])(
  "keys are found across pieces of %i bytes",
  async (size) => {
    const keys = Array.from({ length: 5 }, newKey);
    const [first = "", second = "", ...others] = keys;
    const text = `KEY=${first}\n{"key":"${second}"} h\u00e9llo ${others.join(",")} ${first}`;
    expect(await findKeys(inPieces(text, size))).toEqual(keys);
  },
);

test("a text that is too short, or another service's key, is no key", async () => {
  const cut = newKey().slice(0, -1);
  expect(await findKeys(inPieces(`${cut} sk-abc_12345678_ slc-mgt_abcdefgh`, 16))).toEqual([]);
});
