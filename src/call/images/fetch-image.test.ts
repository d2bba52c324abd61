import { expect, test } from "bun:test";
import { imageTypeOf } from "./fetch-image.ts";

const bytesOf = (text: string) => Uint8Array.from(Buffer.from(text, "latin1"));

test.each([
  ["\x89PNG\r\n\x1a\n....", "image/png"],
  ["\xff\xd8\xff\xe0....", "image/jpeg"],
  ["GIF87a....", "image/gif"],
  ["GIF89a....", "image/gif"],
  ["RIFF\x10\0\0\0WEBPVP8 ", "image/webp"],
] as const)("%p is the start of an image of type %s", (text, type) => {
  expect(imageTypeOf(bytesOf(text))).toBe(type);
});

test.each([
  "",
  "\x89PNG",
  "\x89PNG\n\x1a\n",
  "\xff\xd8",
  "GIF88a",
  "RIFF\x10\0\0\0WAVEfmt ",
  "RIFF\x10\0\0\0",
  "<svg xmlns='http://www.w3.org/2000/svg'/>",
  " GIF89a",
])("%p is not an image that models accept", (text) => {
  expect(imageTypeOf(bytesOf(text))).toBeUndefined();
});
