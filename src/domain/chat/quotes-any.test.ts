import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { quotesAny } from "./quotes-any.ts";

const credential = "k-Ab3_x9/Zz+12=&q~";

function hexOf(text: string): string {
  return Buffer.from(text).toString("hex");
}

function each(text: string, write: (code: number, character: string) => string): string {
  return text
    .split("")
    .map((character) => write(character.charCodeAt(0), character))
    .join("");
}

function padded(code: number, digits: number): string {
  return code.toString(16).padStart(digits, "0");
}

const writings: Readonly<Record<string, (text: string) => string>> = {
  plain: (text) => text,
  "in capitals": (text) => text.toUpperCase(),
  "percent-encoded": encodeURIComponent,
  "percent-encoded, every character": (text) => each(text, (code) => `%${padded(code, 2)}`),
  "percent-encoded twice": (text) => encodeURIComponent(encodeURIComponent(text)),
  "JSON escapes": (text) => each(text, (code) => `\\u${padded(code, 4)}`),
  "JSON escapes of some, within JSON": (text) =>
    JSON.stringify(text.replace("/", "\\/").replace("&", "\\u0026")).slice(1, -1),
  "escapes of JavaScript": (text) => each(text, (code) => `\\x${padded(code, 2)}`),
  "HTML escapes": (text) => each(text, (code) => `&#${code};`),
  "HTML escapes in hexadecimal digits": (text) => each(text, (code) => `&#x${padded(code, 2)};`),
  "HTML escapes where they are needed": (text) => text.replaceAll("&", "&amp;"),
  "hexadecimal digits": hexOf,
  "hexadecimal digits in capitals": (text) => hexOf(text).toUpperCase(),
  "hexadecimal digits in pairs": (text) => each(text, (code) => `${padded(code, 2)} `),
  base64: (text) => Buffer.from(text).toString("base64"),
  "base64 after one byte": (text) => Buffer.from(`:${text}`).toString("base64"),
  "base64 after two bytes": (text) => Buffer.from(`::${text};;`).toString("base64"),
  "base64 for URLs": (text) => Buffer.from(text).toString("base64url"),
  "base64 in lines": (text) => Buffer.from(text).toString("base64").replace(/.{5}/g, "$&\r\n"),
  "split by spaces": (text) => text.replace(/.{4}/g, "$& "),
  "split by line ends that JSON escapes": (text) => text.replace(/.{4}/g, "$&\\n"),
  "split by invisible characters": (text) => text.replace(/.{4}/g, "$&\u200b"),
};

describe("a quote is recognised", () => {
  test.each(Object.keys(writings))("%s", (name) => {
    const written = writings[name]?.(credential) ?? "";
    expect(written.length).toBeGreaterThanOrEqual(credential.length);
    expect(quotesAny(`It says ${written}, and more.`, ["another text", credential])).toBe(true);
  });

  test("in any surrounding text", () => {
    const printable = fc.stringMatching(/^[ -~]{12,40}$/).filter((text) => !/[\s%&\\=]/.test(text));
    const around = fc.stringMatching(/^[éü]{0,8}$/);
    fc.assert(
      fc.property(printable, around, around, (text, before, after) => {
        expect(quotesAny(`${before}${text}${after}`, [text])).toBe(true);
      }),
    );
  });

  test("when the message was cut in its middle", () => {
    for (let length = 6; length < credential.length; length += 1) {
      for (const write of [(text: string) => text, hexOf]) {
        const part = write(credential).slice(0, length);
        expect(quotesAny(`It says ${part}...`, [credential])).toBe(true);
      }
    }
  });
});

test("other words are no quotes", () => {
  for (const words of [
    "",
    "...",
    "Invalid 'temperature': 100%25 of 50% \\u0041 &amp; so on...",
    "k-Ab3_x9/Zz+12",
  ]) {
    expect(quotesAny(words, [credential])).toBe(false);
  }
  expect(quotesAny("It says hello", [])).toBe(false);
});
