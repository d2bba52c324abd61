import { chmodSync, copyFileSync, mkdirSync, readdirSync, statSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { errorCode } from "../../domain/errors/error-code.ts";
import { systemFiles } from "../../ledger/spool/spool-files.ts";
import { isObject } from "../../domain/json-object.ts";
import { CommandError, reasonOf } from "../command.ts";
import { readTextFile } from "../read-input.ts";

/** The parts of a backup, by their names in its folder. */
export const parts = {
  manifest: "backup.json",
  database: "sluice.db",
  pepper: "pepper",
  installation: "installation",
  spool: "spool",
} as const;

/** What a backup records about itself. */
export interface Manifest {
  readonly format: 1;
  /** Version of the program that made it. */
  readonly version: string;
  readonly madeAt: string;
  /** SHA-256 of each file, by its path in the folder. */
  readonly files: Readonly<Record<string, string>>;
}

/** Throws `CommandError`. */
export function readManifest(folder: string): Manifest {
  const path = join(folder, parts.manifest);
  let value: unknown;
  try {
    value = JSON.parse(readTextFile(path));
  } catch (error) {
    if (error instanceof CommandError) throw error;
    throw new CommandError(`${path} is damaged`);
  }
  if (!isObject(value) || !isObject(value["files"])) throw new CommandError(`${path} is damaged`);
  const { format } = value;
  const [version, madeAt] = [String(value["version"]), String(value["madeAt"])];
  if (format !== 1) {
    throw new CommandError(`${path}: a newer version of Sluice (${version}) made this backup`);
  }
  const files = Object.fromEntries(
    Object.entries(value["files"]).map(([name, digest]) => [name, String(digest)]),
  );
  const foreign = Object.keys(files).find((name) => !isPart(name));
  if (foreign !== undefined) {
    throw new CommandError(`${path} names a file that is not part of a backup: ${foreign}`);
  }
  if (files[parts.database] === undefined) throw new CommandError(`${path} names no database`);
  return { format, version, madeAt, files };
}

/** Whether a path is one that a backup has: others could lead out of the folder. */
function isPart(name: string): boolean {
  const [first = "", ...below] = name.split("/");
  if (first === parts.spool) {
    return below.length > 0 && below.every((segment) => /^[\w-][\w.-]*$/.test(segment));
  }
  const files: readonly string[] = [parts.database, parts.pepper, parts.installation];
  return below.length === 0 && files.includes(first);
}

/** Paths of all files in a folder and those below, without those of locks. */
export function filesIn(folder: string): readonly string[] {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile() && !/^lock(?:-.*)?$/.test(entry.name))
    .map(({ parentPath, name }) => relative(folder, join(parentPath, name)))
    .toSorted();
}

/** Copies a file with its mode to the disk. False when it is gone meanwhile. Throws `CommandError`. */
export async function copyFile(from: string, to: string): Promise<boolean> {
  try {
    mkdirSync(dirname(to), { recursive: true, mode: 0o700 });
    const { mode } = statSync(from);
    copyFileSync(from, to);
    await systemFiles.syncPath(to);
    chmodSync(to, mode);
    return true;
  } catch (error) {
    if (errorCode(error) === "ENOENT") return false;
    throw new CommandError(`${from} cannot be copied to ${to}: ${reasonOf(error)}`);
  }
}

export async function digestOf(path: string): Promise<string> {
  const hasher = new Bun.CryptoHasher("sha256");
  for await (const chunk of Bun.file(path).stream()) hasher.update(chunk);
  return hasher.digest("hex");
}
