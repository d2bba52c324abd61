import { afterEach, expect, test } from "bun:test";
import { fileURLToPath } from "node:url";
import { readDocument } from "../support/documents.ts";
import { blocksOf } from "./blocks.ts";
import { Walk } from "./walk.ts";

/** A gateway like that of the documents, whose provider is the simulator. */
const preparation = readDocument("test/documents/preparation.md");
const root = fileURLToPath(new URL("../..", import.meta.url));
const pages = [...new Bun.Glob("docs/**/*.md").scanSync(root)].toSorted();

let walk: Walk | undefined;
// Runs after a timeout, too.
afterEach(async () => {
  await walk?.[Symbol.asyncDispose]();
  walk = undefined;
});

for (const page of ["README.md", ...pages]) {
  const blocks = blocksOf(readDocument(page));
  if (!blocks.some(({ kind }) => kind === "command")) continue;
  test(`the commands of ${page} do what it says, from top to bottom`, async () => {
    const own = new Walk();
    walk = own;
    const before = page === "README.md" ? [] : blocksOf(preparation);
    for (const block of [...before, ...blocks]) {
      if (block.kind === "file") own.write(block.name, block.text);
      else expect(await own.run(block)).toBeUndefined();
    }
  }, 300_000);
}
