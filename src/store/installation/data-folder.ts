import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { basename, join } from "node:path";
import { oddKind } from "../../domain/system-files.ts";
import { randomBase62, type RandomBytes } from "../../domain/keys/base62.ts";
import { pepperPath } from "./pepper.ts";
import { writeOnce } from "./write-once.ts";

/** The id and the spool that a data directory holds of its installation. */
export class DataFolder {
  readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  /** Undefined before the first database, and when the file is empty. */
  readId(): string | undefined {
    try {
      const odd = oddKind(statSync(this.#idPath));
      if (odd !== undefined) throw new Error(`${this.#idPath} is ${odd}; it must be a file`);
      const id = readFileSync(this.#idPath, "utf8").trim();
      return id === "" ? undefined : id;
    } catch (error) {
      if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
      throw error;
    }
  }

  keepId(id: string): void {
    if (this.readId() === id) return;
    rmSync(this.#idPath, { force: true });
    writeOnce(this.#idPath, `${id}\n`);
  }

  /** Names the gateway that uses this directory among those on its database. */
  replicaId(random: RandomBytes): string {
    const path = join(this.path, "replica");
    if (!existsSync(path)) writeOnce(path, `rep_${randomBase62(16, random)}\n`);
    return readFileSync(path, "utf8").trim();
  }

  /** Whether a gateway of any version has used it with a database. */
  get wasUsed(): boolean {
    return existsSync(this.#idPath) || existsSync(pepperPath(this.path)) || this.hasCalls;
  }

  /** Whether the spool has calls that are not in the database yet. */
  get hasCalls(): boolean {
    if (!this.hasSpool) return false;
    return readdirSync(this.spoolPath, { encoding: "utf8", recursive: true }).some(
      (name) => name.endsWith(".spool") && statSync(join(this.spoolPath, name)).size > 0,
    );
  }

  get hasSpool(): boolean {
    return existsSync(this.spoolPath);
  }

  get spoolPath(): string {
    return join(this.path, "spool");
  }

  /** Moves the id and the spool into a folder of this name; returns its path and what was moved. */
  putAside(name: string): { readonly path: string; readonly went: readonly string[] } {
    const path = join(this.path, name);
    const went = [this.#idPath, this.spoolPath].filter((each) => existsSync(each));
    if (went.length > 0) mkdirSync(path, { mode: 0o700 });
    for (const each of went) renameSync(each, join(path, basename(each)));
    return { path, went: went.map((each) => basename(each)) };
  }

  get #idPath(): string {
    return join(this.path, "installation");
  }
}
