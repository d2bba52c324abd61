/** Writes the commit into a file of the npm package: `npm pack` runs this before it packs. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { commitOfCheckout } from "../src/process/program.ts";

writeFileSync(join(import.meta.dir, "../commit"), `${commitOfCheckout() ?? "unknown"}\n`);
