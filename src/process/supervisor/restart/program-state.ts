import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";

const programRoot = new URL("../../../../", import.meta.url).pathname;

/**
 * Tells apart states of the program on disk: its sources, its packages and the runtime. Undefined
 * while it cannot be read, as in the middle of an update.
 */
export function readProgramState(root = programRoot): string | undefined {
  try {
    const sources = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" });
    const paths = [
      ...sources.filter((path) => path.endsWith(".ts")).map((path) => join(root, "src", path)),
      join(root, "package.json"),
      process.execPath,
    ];
    const hash = new Bun.CryptoHasher("sha256");
    for (const path of paths.toSorted()) {
      // Packages are unpacked with a constant time of modification.
      const { ino, size, ctimeMs } = statSync(path);
      hash.update(`${path} ${ino} ${size} ${ctimeMs}\n`);
    }
    return hash.digest("hex");
  } catch {
    return undefined;
  }
}
