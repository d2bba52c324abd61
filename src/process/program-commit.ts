import { readFileSync, statSync } from "node:fs";
import { join, resolve } from "node:path";

/** The build of an executable replaces it with a string. */
declare const SLUICE_COMMIT: string | undefined;

const programRoot = new URL("../../", import.meta.url).pathname;

/** The file of the npm package with the commit from which it was packed. */
export const commitFile = "commit";

/**
 * The commit of the program: in an executable the one that it was built from, in a git checkout the
 * current one, whatever was changed since, in the npm package the one in its file. Undefined if none
 * is known. Needs no git.
 */
export function readCommit(root = programRoot): string | undefined {
  if (typeof SLUICE_COMMIT === "string") return hashIn(SLUICE_COMMIT);
  return commitOfCheckout(join(root, ".git")) ?? hashIn(readText(join(root, commitFile)));
}

export function describeVersion(version: string, commit: string | undefined): string {
  return `${version} (commit ${commit ?? "unknown"})`;
}

function commitOfCheckout(path: string): string | undefined {
  const folder = gitFolderAt(path);
  const head = readText(join(folder, "HEAD"));
  const [, reference] = /^ref: (\S+)/.exec(head) ?? [];
  if (reference === undefined) return hashIn(head);
  // A worktree has its own HEAD, and shares the branches.
  const shared = resolve(folder, readText(join(folder, "commondir")).trim());
  const loose = hashIn(readText(join(shared, reference)));
  const packed = readText(join(shared, "packed-refs"));
  return loose ?? hashIn(packed.split("\n").find((line) => line.endsWith(` ${reference}`)) ?? "");
}

/** In a worktree, `.git` is a file that names its folder. */
function gitFolderAt(path: string): string {
  const isFile = statSync(path, { throwIfNoEntry: false })?.isFile() === true;
  const [, named] = isFile ? (/^gitdir: (.+)/.exec(readText(path)) ?? []) : [];
  return named === undefined ? path : resolve(path, "..", named);
}

/** Short enough to read, and long enough to be unique. */
function hashIn(text: string): string | undefined {
  return /^([0-9a-f]{12})[0-9a-f]{28}/.exec(text)?.[1] ?? /^[0-9a-f]{12}$/.exec(text.trim())?.[0];
}

function readText(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
