import { expect, test } from "bun:test";
import fc from "fast-check";
import { apiKeyPattern, generateApiKey, maskApiKey, readPublicId } from "./api-key.ts";

const random = (target: Uint8Array): Uint8Array => crypto.getRandomValues(target);

test("a generated key has the published form and gives its public id back", () => {
  const { publicId, text } = generateApiKey(random);
  expect(text).toMatch(new RegExp(`^${apiKeyPattern.source}$`));
  expect(text).toHaveLength(65);
  expect(readPublicId(text)).toBe(publicId);
});

test("a key with any one character changed is refused before any lookup", () => {
  const { text } = generateApiKey(random);
  const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_-é";
  for (let index = 0; index < text.length; index += 1) {
    for (const character of alphabet) {
      if (character === text.charAt(index)) continue;
      const changed = text.slice(0, index) + character + text.slice(index + 1);
      expect(readPublicId(changed)).toBeUndefined();
    }
  }
});

test("no malformed text passes as a key", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary", maxLength: 80 }), (junk) => {
      expect(readPublicId(junk)).toBeUndefined();
      expect(readPublicId(`sk-slc_${junk}`)).toBeUndefined();
    }),
    { numRuns: 5_000 },
  );
});

test("50,000 random texts of the right form do not pass the checksum", () => {
  let accepted = 0;
  for (let index = 0; index < 50_000; index += 1) {
    const { text } = generateApiKey(random);
    // The head of one key with the tail of another: well-formed, but the checksum is wrong.
    const other = generateApiKey(random).text;
    if (readPublicId(text.slice(0, 40) + other.slice(40)) !== undefined) accepted += 1;
  }
  expect(accepted).toBe(0);
});

test("keys are unique, and ids use the whole alphabet", () => {
  const keys = Array.from({ length: 2_000 }, () => generateApiKey(random));
  expect(new Set(keys.map(({ text }) => text)).size).toBe(keys.length);
  expect(new Set(keys.map(({ publicId }) => publicId).join("")).size).toBe(62);
});

test("a masked key shows its head and last four characters, but never the secret", () => {
  fc.assert(
    fc.property(fc.string({ maxLength: 90 }), (text) => {
      const masked = maskApiKey(text);
      const { text: key } = generateApiKey(random);
      const maskedKey = maskApiKey(key);
      expect(maskedKey).toBe(`${key.slice(0, 15)}****${key.slice(-4)}`);
      if (text.length > 12) expect(masked.length).toBeLessThan(24);
      else expect(masked).toBe("*".repeat(text.length));
    }),
  );
});
