import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Config } from "../../config/config.ts";
import { FolderInUse, lockFolder, type FolderLock } from "../../ledger/spool/folder-lock.ts";
import { hasSupervisor } from "../../process/supervisor/restart/restart-socket.ts";
import { WrongDatabase } from "../../store/errors.ts";
import { DataFolder } from "../../store/installation/data-folder.ts";
import { Installation } from "../../store/installation/installation.ts";
import { CommandError, type CommandIo } from "../command.ts";
import { databaseFileOf } from "../database-file.ts";
import { whoUses } from "../serve/start-messages.ts";
import { parts } from "./backup-folder.ts";
import { databaseFiles, StagedBackup } from "./staged-backup.ts";
import { verifyBackup, type VerifiedBackup } from "./verify-backup.ts";

export interface RestoreOptions {
  readonly config: Config;
  readonly folder: string;
  /** Whether existing data is moved aside. */
  readonly replaces: boolean;
  /** Whether the gateway is running; then only the database is restored. */
  readonly isRunning: boolean;
}

export interface Restored extends VerifiedBackup {
  /** Where the previous data was moved to. */
  readonly aside: readonly string[];
}

/** Restores a verified backup to the places that the configuration names. Throws `CommandError`. */
export async function restoreBackup(options: RestoreOptions, io: CommandIo): Promise<Restored> {
  const { config, folder, isRunning } = options;
  if (databaseFileOf(config, "restore") === ":memory:") {
    throw new CommandError("a database in memory cannot be restored");
  }
  const verified = await verifyBackup(folder, config);
  const stamp = new Date(io.clock.now()).toISOString().replaceAll(/[-:.]/g, "");
  if (isRunning) {
    await requireGateway(config);
    requireSame(config, verified, io);
    const staged = await StagedBackup.copy({ config, folder, names: [parts.database] });
    return { ...verified, aside: await staged.putDatabase(stamp) };
  }
  const lock = await lockData(config.dataDir);
  try {
    requireRoom(options);
    const staged = await StagedBackup.copy({ config, folder, names: namesFor(config, verified) });
    return { ...verified, aside: await staged.putAll(stamp) };
  } finally {
    lock.release();
  }
}

/**
 * A running gateway keeps its pepper and its installation, and refuses a database of another one.
 */
function requireSame(config: Config, { facts }: VerifiedBackup, io: CommandIo): void {
  try {
    new Installation(config, io).check({ ...facts, path: config.storage.path });
  } catch (error) {
    if (!(error instanceof WrongDatabase)) throw error;
    throw new CommandError(`not restored: the database of the backup ${error.what}`);
  }
}

/** Without its control process a gateway does not lock the folder, but its workers serve. */
async function requireGateway({ dataDir }: Config): Promise<void> {
  if (await hasSupervisor(dataDir)) return;
  const { spoolPath, hasSpool } = new DataFolder(dataDir);
  const lock = hasSpool ? lockUnlessInUse(spoolPath) : undefined;
  if (hasSpool && lock === undefined) return;
  lock?.release();
  throw new CommandError(`not restored: no gateway runs on ${dataDir}; leave out --running`);
}

async function lockData(dataDir: string): Promise<FolderLock> {
  const { spoolPath } = new DataFolder(dataDir);
  mkdirSync(spoolPath, { recursive: true, mode: 0o700 });
  const lock = lockUnlessInUse(spoolPath);
  if (lock === undefined) throw usedBy(await whoUses(dataDir));
  if (!(await hasSupervisor(dataDir))) return lock;
  lock.release();
  throw usedBy(`the workers of a gateway are using the data directory ${dataDir}. Stop it.`);
}

function lockUnlessInUse(path: string): FolderLock | undefined {
  try {
    return lockFolder(path);
  } catch (error) {
    if (error instanceof FolderInUse) return undefined;
    throw error;
  }
}

function usedBy(who: string): CommandError {
  return new CommandError(
    `not restored: ${who}\nTo replace only its database while it runs: --running.`,
  );
}

function requireRoom({ config, replaces }: RestoreOptions): void {
  const { dataDir, storage } = config;
  const data = new DataFolder(dataDir);
  if (replaces) return;
  const found = [
    ...databaseFiles(storage.path),
    ...[parts.pepper, parts.installation].map((name) => join(dataDir, name)),
  ].filter((path) => existsSync(path));
  if (found.length === 0 && !data.hasCalls) return;
  const what = found.length === 0 ? data.spoolPath : found.join(", ");
  throw new CommandError(
    `not restored: there is data (${what}). To move it aside and restore: --replace`,
  );
}

/** The pepper of the backup is not needed beside those of the configuration. */
function namesFor({ auth }: Config, { manifest }: VerifiedBackup): readonly string[] {
  const names = Object.keys(manifest.files);
  return auth.peppers.length === 0 ? names : names.filter((name) => name !== parts.pepper);
}
