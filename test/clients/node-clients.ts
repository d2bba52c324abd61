import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { cacheFolder, run } from "../sdk/registry-test.ts";

const source = join(import.meta.dir, "node");

/**
 * A folder outside the repository with the pinned clients of `node/package.json` and the programs
 * beside it. The clients are installed once.
 */
export async function nodeClients(): Promise<string> {
  const files = readdirSync(source).toSorted();
  const folder = cacheFolder("node", readFileSync(join(source, "package.json"), "utf8"));
  mkdirSync(folder, { recursive: true });
  for (const file of files) copyFileSync(join(source, file), join(folder, file));
  const marker = join(folder, "complete");
  if (existsSync(marker)) return folder;
  await run(["npm", "install", "--no-audit", "--no-fund", "--no-package-lock"], { cwd: folder });
  writeFileSync(marker, "");
  return folder;
}
