/**
 * Counts the words of every document: `npm run words`; `--flaws` prints each flaw of their sentences. `wc -w` counts some
 * 7 % more, because marks of lists, headings and tables are words to it.
 * Fails above a limit.
 */
import { readFileSync } from "node:fs";
import { longSentences, translatedPhrases } from "./documents/prose.ts";

const most = { readme: 700, page: 3000, docs: 45_000 };
/** Pages that may have more, and why. */
const longer: Readonly<Record<string, number>> = {
  // Generated from the schema.
  "docs/configuration-reference.md": 4720,
};
/** In all pages; to be 0. */
const mostFlaws = { longSentences: 0, translatedPhrases: 0 };

interface Page {
  readonly path: string;
  readonly words: number;
  readonly long: readonly string[];
  readonly translated: readonly string[];
}

process.exitCode = main();

function main(): number {
  const pages = [
    ...new Bun.Glob("{README,CONTRIBUTING,CHANGELOG,SECURITY}.md").scanSync("."),
    ...new Bun.Glob("docs/**/*.md").scanSync("."),
  ]
    .map(readPage)
    .toSorted((one, other) => other.words - one.words);
  const showsFlaws = process.argv.includes("--flaws");
  for (const { path, words, long, translated } of pages) {
    console.log(`${String(words).padStart(6)}  ${path}`);
    const flaws = showsFlaws ? [...long, ...translated] : [];
    for (const flaw of flaws) console.log(`${" ".repeat(8)}${flaw}`);
  }
  const below = pages.filter(({ path }) => path.startsWith("docs/"));
  const inDocs = sum(below.map(({ words }) => words));
  const long = sum(pages.map((page) => page.long.length));
  const translated = sum(pages.map((page) => page.translated.length));
  console.log(`${String(inDocs).padStart(6)}  docs/`);
  const breaches = [
    ...pages.flatMap(({ path, words }) => atMost(path, words, mostOf(path))),
    ...atMost("docs/", inDocs, most.docs),
    ...atMost("sentences of more than 30 words", long, mostFlaws.longSentences),
    ...atMost("phrases that read as translated", translated, mostFlaws.translatedPhrases),
  ];
  for (const breach of breaches) console.log(breach);
  return breaches.length === 0 ? 0 : 1;
}

function readPage(path: string): Page {
  const text = readFileSync(path, "utf8");
  return {
    path,
    words: text.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word)).length,
    long: longSentences(text, 30),
    translated: translatedPhrases(text),
  };
}

function mostOf(path: string): number {
  return longer[path] ?? (path === "README.md" ? most.readme : most.page);
}

function atMost(what: string, count: number, limit: number): readonly string[] {
  return count > limit ? [`${what}: ${count}, at most ${limit}`] : [];
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0);
}
