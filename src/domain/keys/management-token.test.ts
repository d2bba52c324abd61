import { expect, test } from "bun:test";
import {
  generateApiKey,
  generateManagementToken,
  managementTokenPattern,
  readPublicId,
  readTokenId,
  tokenHint,
} from "./api-key.ts";

const random = (target: Uint8Array): Uint8Array => crypto.getRandomValues(target);

test("a generated token has the published form and gives its public id back", () => {
  const { publicId, text } = generateManagementToken(random);
  expect(text).toMatch(new RegExp(`^${managementTokenPattern.source}$`));
  expect(readTokenId(text)).toBe(publicId);
  expect(text.startsWith(`${tokenHint(publicId)}_`)).toBe(true);
});

test("an API key is no management token, and a management token is no API key", () => {
  const key = generateApiKey(random).text;
  const token = generateManagementToken(random).text;
  expect(readTokenId(key)).toBeUndefined();
  expect(readPublicId(token)).toBeUndefined();
  // Not even with the other's prefix: the checksum covers it.
  expect(readTokenId(key.replace("sk-slc_", "slc-mgt_"))).toBeUndefined();
  expect(readPublicId(token.replace("slc-mgt_", "sk-slc_"))).toBeUndefined();
});

test("a token with any one character changed is refused before any lookup", () => {
  const { text } = generateManagementToken(random);
  for (let index = 0; index < text.length; index += 1) {
    const other = text.charAt(index) === "a" ? "b" : "a";
    expect(readTokenId(text.slice(0, index) + other + text.slice(index + 1))).toBeUndefined();
  }
});
