import { expect, test } from "bun:test";
import fc from "fast-check";
import * as cl100k from "gpt-tokenizer/encoding/cl100k_base";
import * as o200k from "gpt-tokenizer/encoding/o200k_base";
import { fewestTokens, ReadTexts } from "./fewest-tokens.ts";

/** Real tokenizers with large vocabularies, which need the fewest tokens. */
const tokenizers = [
  { name: "cl100k", size: 100_256, ...cl100k },
  { name: "o200k", size: 199_998, ...o200k },
];

const prose =
  "The quick brown fox jumps over the lazy dog, while the internationalization committee of " +
  "Llanfairpwllgwyngyll doesn't agree (again!) on U.S. spelling; see https://example.com/a_b?c=1.\n";
const code =
  "for (let index = 0; index < text.length; index += 1) {\n    total += cells[index];\n}\n";
const chinese = "人工智能正在改变我们的生活方式，许多公司都在研究新的技术。";
const texts = {
  prose,
  code,
  chinese,
  "spaces within words": "a        b                                       c\n\n\n\n\t\t\td",
  "rules and marks": "=====================-----------------***{{{}}}....,,,;;;!!!",
  numbers: "1234567890 3.14159265358979 2026-11-22T22:24:18Z 0x7fffffff",
  "a run of letters": "a".repeat(50),
  "names in one word": "translatesAutoresizingMaskIntoConstraints NSLayoutConstraintFormatOptions",
  russian: "Съешь же ещё этих мягких французских булок, да выпей чаю.",
  hindi: "सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता प्राप्त है।",
  korean: "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다.",
  japanese: "すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。",
  thai: "มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ",
  emoji: "👩‍👩‍👧‍👦 🎉🎉🎉 ok 👍🏽",
};

test.each(Object.entries(texts))("%s has no fewer tokens than are promised", (_name, text) => {
  for (const { encode } of tokenizers) {
    expect(fewestTokens(text.repeat(20))).toBeLessThanOrEqual(encode(text.repeat(20)).length);
  }
});

/** Four ideographs a token hold for running text, not for the longest tokens. */
const withoutIdeographs = (text: string): string =>
  text.replaceAll(/[\u3041-\u30ff\u3400-\u9fff\uac00-\ud7af]/g, "");

test("no token of a vocabulary counts as more than one", () => {
  for (const { decode, size } of tokenizers) {
    const wrong = Array.from({ length: size }, (_, token) => withoutIdeographs(decode([token])))
      .filter((text) => fewestTokens(text) > 1)
      .slice(0, 10);
    expect(wrong).toEqual([]);
  }
});

test("no text of a vocabulary's own tokens has fewer than the estimate", () => {
  for (const { decode, encode, size } of tokenizers) {
    const token = fc.integer({ min: 0, max: size - 1 });
    const property = fc.property(fc.array(token, { maxLength: 40 }), (tokens) => {
      const text = withoutIdeographs(decode(tokens));
      expect(fewestTokens(text)).toBeLessThanOrEqual(encode(text).length);
    });
    fc.assert(property, { numRuns: 300 });
  }
});

test("at least a quarter of the tokens of running text are found", () => {
  for (const text of [prose, code, chinese]) {
    const long = text.repeat(50);
    expect(fewestTokens(long)).toBeGreaterThan(o200k.encode(long).length / 4);
  }
});

test("spaces and marks may cost next to nothing, so they count as 0", () => {
  expect(fewestTokens(" ".repeat(100_000) + "\n".repeat(100_000) + "-".repeat(100_000))).toBe(0);
});

test("several texts count together, or the longest of them alone", () => {
  const read = new ReadTexts(["one two three", "four five", ""]);
  expect([read.sumFor(4), read.mostFor(4)]).toEqual([5, 3]);
});

test("texts that are shorter than the limit are not scanned", () => {
  const read = new ReadTexts(["one two three", "four five"]);
  expect([read.sumFor(22), read.mostFor(13)]).toEqual([0, 0]);
});

test("only the beginning of very long texts is scanned", () => {
  const read = new ReadTexts([" ".repeat(4_000_000), "word ".repeat(1_000)]);
  expect(read.sumFor(10)).toBe(0);
  expect(new ReadTexts(["word ".repeat(1_000_000)]).sumFor(10)).toBe(800_000);
});
