import { existsSync, readFileSync } from "node:fs";
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Clock } from "../../domain/clock.ts";

/** Reads a file of the built console; undefined: there is none of this name. */
export type ReadConsoleFile = (name: string) => Promise<Uint8Array<ArrayBuffer> | undefined>;

/** Anybody can ask for a page, so the sources are read at most this often. */
const lookMs = 1_000;

const root = fileURLToPath(new URL("../../../console/", import.meta.url));

/**
 * The files of the console: in the executable, in the npm package, or built from the sources of a
 * checkout. `dataDir` keeps what was built.
 */
export function consoleFiles(
  dataDir: string,
  clock: Pick<Clock, "monotonic">,
): () => Promise<ReadConsoleFile> {
  const embedded = new Map(Bun.embeddedFiles.map((file) => [nameOf(file), file]));
  if (embedded.size > 0) {
    const read: ReadConsoleFile = async (name) => embedded.get(name)?.bytes();
    return () => Promise.resolve(read);
  }
  if (!existsSync(join(root, "build.ts"))) {
    const read = readerOf(join(root, "dist"));
    return () => Promise.resolve(read);
  }
  return sourceBuilder(join(dataDir, "console"), clock);
}

/** Types of the runtime leave the name out. */
function nameOf(file: Blob): string {
  return "name" in file ? String(file.name) : "";
}

function readerOf(folder: string): ReadConsoleFile {
  return async (name) => {
    const file = Bun.file(join(folder, name));
    return (await file.exists()) ? file.bytes() : undefined;
  };
}

/**
 * Builds the sources as they are now, if they have not been built. It takes half a second of
 * processor time and 90 MB, so a process of its own does it.
 */
function sourceBuilder(
  folder: string,
  clock: Pick<Clock, "monotonic">,
): () => Promise<ReadConsoleFile> {
  let building: { readonly digest: string; readonly files: Promise<ReadConsoleFile> } | undefined;
  let lookedAt = -Infinity;
  return () => {
    if (building !== undefined && clock.monotonic() - lookedAt < lookMs) return building.files;
    lookedAt = clock.monotonic();
    const digest = digestOfSources();
    if (building?.digest === digest) return building.files;
    const files = buildInto(folder, digest);
    building = { digest, files };
    // The next request tries again.
    files.catch(() => (building = undefined));
    return files;
  };
}

async function buildInto(folder: string, digest: string): Promise<ReadConsoleFile> {
  const target = join(folder, digest);
  if (!existsSync(target)) {
    const command = [process.execPath, join(root, "build.ts"), target];
    const child = Bun.spawn(command, { stdin: "ignore", stdout: "ignore", stderr: "pipe" });
    const [errors, exitCode] = await Promise.all([new Response(child.stderr).text(), child.exited]);
    if (exitCode !== 0) throw new Error(`the console was not built: ${errors.slice(-2_000)}`);
    const others = (await readdir(folder)).filter((name) => !name.startsWith(digest));
    for (const name of others) await rm(join(folder, name), { recursive: true, force: true });
  }
  return readerOf(target);
}

/** Paths within the folder of the console. */
export function consoleSources(): string[] {
  // The runtime finds nothing by one pattern with `/` inside braces.
  const patterns = ["*.{ts,json,html,svg}", "src/**/*"];
  return patterns.flatMap((pattern) => [...new Bun.Glob(pattern).scanSync(root)]).toSorted();
}

function digestOfSources(): string {
  const hasher = new Bun.CryptoHasher("sha256");
  for (const path of consoleSources()) {
    hasher.update(path).update(readFileSync(join(root, path)));
  }
  return hasher.digest("hex").slice(0, 32);
}
