import { expect, test } from "bun:test";
import { createTokenDecoder } from "./decode-tokens.ts";

const decode = createTokenDecoder();
const limitBytes = 1024 * 1024;

test("token ids become the texts they stand for, and texts stay", async () => {
  const texts = await decode([[9906, 1917], "as it is", [100257]], limitBytes);
  expect(texts).toEqual(["Hello world", "as it is", "<|endoftext|>"]);
});

/** "🦜" consists of three tokens, none of which is a character. */
const parrot = [9468, 99, 250];

test("characters of several tokens are put together", async () => {
  expect(await decode([parrot], limitBytes)).toEqual(["🦜"]);
});

test("half a character is no part of the next text", async () => {
  await decode([parrot.slice(0, 1), parrot.slice(0, 2)], limitBytes);
  expect(await decode([[9906], [9906]], limitBytes)).toEqual(["Hello", "Hello"]);
});

test("ids that the encoding does not have are 400", async () => {
  for (const id of [100256, 100300, 2 ** 40]) {
    const error = await decode([[9906, id]], limitBytes).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ status: 400, param: "input" });
  }
});

test("ids of more text than the limit are 413, whichever input it is", async () => {
  // 128 spaces each.
  const spaces = Array.from({ length: 4 }, () => 58040);
  const [text] = await decode([spaces], 512);
  expect(text).toBe(" ".repeat(512));
  for (const inputs of [[spaces], [spaces.slice(0, 2), spaces.slice(0, 2)]]) {
    const error = await decode(inputs, 511).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ status: 413, param: "input" });
    expect(String(error)).toContain("more than 511 bytes of text");
  }
});

test("a long run of ids that are parts of characters takes linear time", async () => {
  const count = 200_000;
  const inputs = [Array.from({ length: count }, () => parrot).flat()];
  const [text] = await decode(inputs, 4 * count);
  expect(text === "🦜".repeat(count)).toBeTrue();
}, 180_000);
