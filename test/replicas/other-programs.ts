import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { cp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** Another version of Sluice in a folder of its own, with the packages of this one. */
export class OtherProgram implements Disposable {
  readonly folder = mkdtempSync(join(tmpdir(), "sluice-program-"));

  constructor() {
    symlinkSync(join(root, "node_modules"), join(this.folder, "node_modules"));
  }

  get command(): readonly string[] {
    return [process.execPath, join(this.folder, "src/main.ts")];
  }

  /** Puts the sources of another one in the place of its own, as an update of a package does. */
  async replaceBy({ folder }: Pick<OtherProgram, "folder">): Promise<void> {
    // The callers and the provider are in this process, and must not wait for the disk.
    await rm(join(this.folder, "src"), { recursive: true, force: true });
    for (const part of parts) {
      await cp(join(folder, part), join(this.folder, part), { recursive: true });
    }
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

const root = fileURLToPath(new URL("../..", import.meta.url));
const parts = ["src", "package.json"];
const migrationsPath = "src/store/postgres/connection/migrations.ts";

/** This version, as it was installed. */
export async function copyOfThis(): Promise<OtherProgram> {
  const copy = new OtherProgram();
  await copy.replaceBy({ folder: root });
  return copy;
}

/** The schema of PostgreSQL in a folder with sources. */
export function schemaIn(folder: string): number {
  return countSteps(readFileSync(join(folder, migrationsPath), "utf8"));
}

/** A version with one more step of the schema, which no version has yet. */
export async function nextVersion(step: {
  readonly sql: string;
  /** Default: this version. */
  readonly of?: OtherProgram;
  /** Default: the schema of this version, whose programs can go on. */
  readonly compatibleSince?: number;
}): Promise<OtherProgram> {
  const { sql, of: before = { folder: root }, compatibleSince = schemaIn(root) } = step;
  const next = new OtherProgram();
  await next.replaceBy(before);
  const path = join(next.folder, migrationsPath);
  const added = `{ name: "next", sql: ${JSON.stringify(sql)}, compatibleSince: ${compatibleSince} }`;
  const steps = readFileSync(path, "utf8");
  writeFileSync(path, steps.replace(/\];\s*$/, `  ${added},\n];\n`));
  if (schemaIn(next.folder) !== schemaIn(before.folder) + 1) throw new Error(`${path} is unusual`);
  return next;
}

/** The version of a commit. */
export function versionOf(commit: string): OtherProgram {
  const version = new OtherProgram();
  const archive = git("archive", commit, ...parts);
  const unpacked = Bun.spawnSync(["tar", "-x", "-C", version.folder], { stdin: archive });
  if (unpacked.exitCode !== 0) throw new Error(`${commit}: ${unpacked.stderr.toString()}`);
  return version;
}

/**
 * The newest commit with an older schema that lets newer ones be. Undefined without a history that
 * reaches back to it: a clone may be shallow, and a package has none.
 */
export function findOlderCommit(): string | undefined {
  const commits = git("rev-list", "HEAD")?.toString().trim().split("\n") ?? [];
  const own = schemaIn(root);
  // One process reads the file of all of them.
  const asked = Buffer.from(commits.map((commit) => `${commit}:${migrationsPath}\n`).join(""));
  const found = git("cat-file", "--batch-check=%(objectname)", "--buffer", asked)?.toString();
  const files = found?.trim().split("\n") ?? [];
  const schemas = new Map<string, number>();
  return commits.find((_, index) => {
    const file = files[index] ?? "";
    if (!/^[0-9a-f]+$/.test(file)) return false;
    const known = schemas.get(file) ?? schemaOf(file);
    schemas.set(file, known);
    return known > 0 && known < own;
  });
}

/** 0 for versions that refuse every newer schema. */
function schemaOf(file: string): number {
  const text = git("cat-file", "blob", file)?.toString() ?? "";
  return text.includes("compatible-versions") ? countSteps(text) : 0;
}

function countSteps(text: string): number {
  return [...text.matchAll(/^\s+(?:\{ )?name: "/gm)].length;
}

/** What git prints; undefined if it fails. The last argument may be its input. */
function git(...command: readonly (string | Buffer)[]): Buffer | undefined {
  const words = command.filter((part) => typeof part === "string");
  const input = command.find((part) => typeof part !== "string");
  const stdin = input === undefined ? "ignore" : input;
  const options = { cwd: root, stdin, stdout: "pipe", stderr: "ignore" } as const;
  const { exitCode, stdout } = Bun.spawnSync(["git", ...words], options);
  return exitCode === 0 ? stdout : undefined;
}
