import { copyFileSync, existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { Config } from "../../config/config.ts";
import { systemFiles } from "../../ledger/spool/spool-files.ts";
import { CommandError, reasonOf } from "../command.ts";
import { copyFile, filesIn, parts } from "./backup-folder.ts";

/** What is restored, and where. */
export interface BackupSource {
  readonly config: Pick<Config, "dataDir" | "storage">;
  readonly folder: string;
  /** Paths of the files in the folder. */
  readonly names: readonly string[];
}

/** Files of a backup on the disks where they belong, so that renames put them in place. */
export class StagedBackup {
  readonly #names: readonly string[];
  readonly #dataDir: string;
  readonly #path: string;
  readonly #files: string;
  readonly #database: string;

  /** Copies the files. When that fails, the data is as before; throws `CommandError`. */
  static async copy(source: BackupSource): Promise<StagedBackup> {
    const staged = new StagedBackup(source);
    try {
      for (const name of source.names) await staged.#copy(join(source.folder, name), name);
      return staged;
    } catch (error) {
      staged.#discard();
      throw new CommandError(`not restored: ${reasonOf(error)}\nNothing was changed.`);
    }
  }

  private constructor({ config, names }: BackupSource) {
    this.#names = names.filter((name) => name !== parts.database);
    this.#dataDir = config.dataDir;
    this.#path = resolve(config.storage.path);
    this.#files = join(config.dataDir, "restoring");
    this.#database = `${this.#path}.restoring`;
  }

  /** Exchanges only the database. Resolves with where the old one is. */
  async putDatabase(stamp: string): Promise<readonly string[]> {
    const aside = this.#moveDatabaseAside(stamp);
    await this.#placeDatabase();
    return aside;
  }

  /**
   * Exchanges everything. A start refuses a directory with an installation but no database, so one
   * that comes after an interruption creates nothing. Resolves with where the old data is.
   */
  async putAll(stamp: string): Promise<readonly string[]> {
    const databases = this.#moveDatabaseAside(stamp);
    const files = this.#exchangeFiles(stamp);
    await systemFiles.syncFolder(this.#dataDir);
    await this.#placeDatabase();
    return [...files, ...databases];
  }

  async #copy(from: string, name: string): Promise<void> {
    const to = name === parts.database ? this.#database : join(this.#files, name);
    if (!(await copyFile(from, to))) throw new CommandError(`${from} is gone`);
  }

  #discard(): void {
    for (const path of [this.#files, this.#database]) {
      rmSync(path, { recursive: true, force: true });
    }
  }

  #moveDatabaseAside(stamp: string): readonly string[] {
    return databaseFiles(this.#path)
      .filter((file) => existsSync(file))
      .map((file) => {
        const suffix = file.slice(this.#path.length);
        const to = `${this.#path}.before-restore-${stamp}${suffix}`;
        renameSync(file, to);
        return to;
      });
  }

  async #placeDatabase(): Promise<void> {
    renameSync(this.#database, this.#path);
    await systemFiles.syncFolder(dirname(this.#path));
  }

  #exchangeFiles(stamp: string): readonly string[] {
    const aside = join(this.#dataDir, `before-restore-${stamp}`);
    const found = [
      ...[parts.installation, parts.pepper].filter((name) => existsSync(join(this.#dataDir, name))),
      ...filesIn(join(this.#dataDir, parts.spool)).map((name) => join(parts.spool, name)),
    ];
    for (const name of found) this.#moveAside(name, aside);
    for (const name of this.#names) move(join(this.#files, name), join(this.#dataDir, name));
    rmSync(this.#files, { recursive: true, force: true });
    return found.length === 0 ? [] : [aside];
  }

  /** The id stays until another one takes its place. */
  #moveAside(name: string, aside: string): void {
    const [from, to] = [join(this.#dataDir, name), join(aside, name)];
    if (name !== parts.installation || !this.#names.includes(name)) return move(from, to);
    mkdirSync(aside, { recursive: true, mode: 0o700 });
    copyFileSync(from, to);
  }
}

/** A database with the files that belong to it. */
export function databaseFiles(path: string): readonly string[] {
  return [path, `${path}-wal`, `${path}-shm`];
}

function move(from: string, to: string): void {
  mkdirSync(dirname(to), { recursive: true, mode: 0o700 });
  renameSync(from, to);
}
