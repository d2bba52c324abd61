import { expect, test } from "bun:test";
import { readDocument } from "../test/support/documents.ts";
import { longSentences, wideTableLines } from "./documents/prose.ts";

const documents = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"];
documents.push(...new Bun.Glob("docs/**/*.md").scanSync(new URL("..", import.meta.url).pathname));

test.each(documents)("no sentence of %s is longer than 35 words", (path) => {
  expect(longSentences(readDocument(path))).toEqual([]);
});

test.each(documents)("no table of %s is wider than 120 columns", (path) => {
  expect(wideTableLines(readDocument(path))).toEqual([]);
});
