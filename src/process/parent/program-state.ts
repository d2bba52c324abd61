import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";

const programRoot = new URL("../../../", import.meta.url).pathname;

/**
 * Identifies the state of the program on disk: its sources, its packages and the runtime, or the
 * executable that holds them. Undefined while it cannot be read, for example in the middle of an
 * update.
 */
export function readProgramState(root = programRoot): string | undefined {
  try {
    const paths = [process.execPath, ...(Bun.isStandaloneExecutable ? [] : filesOf(root))];
    const hash = new Bun.CryptoHasher("sha256");
    for (const path of paths.toSorted()) {
      // Package managers unpack files with a constant modification time.
      const { ino, size, ctimeMs } = statSync(path);
      hash.update(`${path} ${ino} ${size} ${ctimeMs}\n`);
    }
    return hash.digest("hex");
  } catch {
    return undefined;
  }
}

function filesOf(root: string): readonly string[] {
  const sources = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" });
  return [
    ...sources.filter((path) => path.endsWith(".ts")).map((path) => join(root, "src", path)),
    join(root, "package.json"),
  ];
}
