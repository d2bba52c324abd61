/** Writes the commit into a file of the npm package: `npm pack` runs this before it packs. */
import { writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { commitFile, readCommit } from "../src/process/program-commit.ts";

const root = resolve(import.meta.dir, "..");
writeFileSync(join(root, commitFile), `${readCommit(root) ?? "unknown"}\n`);
