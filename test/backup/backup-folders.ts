import { Database } from "bun:sqlite";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makeProcessFolder, type ProcessFolder } from "../failures/outage-process.ts";
import { createKeyOf } from "../support/process-key.ts";
import { runSluice, type FinishedCommand } from "../support/sluice-process.ts";

/** An installation with a key, a place for backups, and an empty installation. */
export class BackupFolders implements AsyncDisposable {
  readonly source: ProcessFolder;
  readonly target: ProcessFolder;
  readonly path = mkdtempSync(join(tmpdir(), "sluice-backup-"));
  readonly backup = join(this.path, "backup");
  key = "";

  private constructor(pepper: string | null) {
    this.source = makeProcessFolder({ pepper });
    this.target = makeProcessFolder({ pepper });
  }

  /** `pepper`: of both configurations; null: each generates its own. */
  static async create(pepper: string | null = null): Promise<BackupFolders> {
    const folders = new BackupFolders(pepper);
    folders.key = await createKeyOf(folders.source.configPath);
    return folders;
  }

  makeBackup(folder = this.backup): Promise<FinishedCommand> {
    return runSluice(["backup", folder, "--config", this.source.configPath]);
  }

  restore(...options: readonly string[]): Promise<FinishedCommand> {
    const { configPath } = this.target;
    return runSluice(["restore", this.backup, "--config", configPath, ...options]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    rmSync(this.path, { recursive: true, force: true });
    await this.source[Symbol.asyncDispose]();
    await this.target[Symbol.asyncDispose]();
  }
}

export interface UsageRow {
  readonly id: string;
  readonly outcome: string;
  readonly tokens: number;
}

/** The ledger of a database; no gateway may run. */
export function rowsOf({ databasePath }: ProcessFolder): ReadonlyMap<string, UsageRow> {
  using database = new Database(databasePath, { readonly: true });
  const rows = database
    .query<UsageRow, []>("SELECT id, outcome, input_tokens + output_tokens AS tokens FROM usage")
    .all();
  return new Map(rows.map((row) => [row.id, row]));
}
