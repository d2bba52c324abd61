import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { Config } from "../../config/config.ts";
import { Installation } from "../../store/installation/installation.ts";
import { pepperPath } from "../../store/installation/pepper.ts";
import { writeOnce } from "../../store/installation/write-once.ts";
import { WrongDatabase } from "../../store/errors.ts";
import { copyDatabase } from "../../store/sqlite/connection/copy-database.ts";
import { inspectDatabase } from "../../store/sqlite/connection/open-database.ts";
import { CommandError, reasonOf, type CommandIo } from "../command.ts";
import { databaseFileOf } from "../database-file.ts";
import { systemFiles } from "../../ledger/spool/spool-files.ts";
import { copyFile, digestOf, filesIn, parts, type Manifest } from "./backup-folder.ts";
import { verifyBackup } from "./verify-backup.ts";

/**
 * Copies the database, the pepper and the spool into a new folder, while the gateway runs. The
 * folder appears only once it is complete and verified. Throws `CommandError`.
 */
export async function makeBackup(config: Config, folder: string, io: CommandIo): Promise<Manifest> {
  if (existsSync(folder)) throw new CommandError(`${folder} exists; name a folder that does not`);
  const installation = requireWhole(config, io);
  const made = `${resolve(folder)}.incomplete`;
  rmSync(made, { recursive: true, force: true });
  try {
    mkdirSync(made, { recursive: true, mode: 0o700 });
    await copyAll(config, installation, made);
    const manifest = await writeManifest(made, io);
    await verifyBackup(made, config);
    renameSync(made, folder);
    await systemFiles.syncFolder(dirname(resolve(folder)));
    return manifest;
  } catch (error) {
    rmSync(made, { recursive: true, force: true });
    if (error instanceof CommandError) throw error;
    throw new CommandError(`the backup could not be made: ${reasonOf(error)}`);
  }
}

function requireWhole(config: Config, io: CommandIo): Installation {
  const path = databaseFileOf(config, "backup");
  if (path === ":memory:") throw new CommandError("a database in memory cannot be backed up");
  const installation = new Installation(config, io);
  try {
    const facts = inspectDatabase(path);
    if (facts.state !== "filled") throw new CommandError(`the database ${path} is ${facts.state}`);
    installation.check(facts);
    return installation;
  } catch (error) {
    if (error instanceof WrongDatabase) throw new CommandError(error.message);
    if (error instanceof CommandError) throw error;
    throw new CommandError(`${path} cannot be read: ${reasonOf(error)}`);
  }
}

/** Copies the spool first: what leaves it afterwards is in the database. */
async function copyAll(config: Config, { folder, pepper }: Installation, made: string) {
  const { spoolPath } = folder;
  for (const name of folder.hasSpool ? filesIn(spoolPath) : []) {
    await copyFile(join(spoolPath, name), join(made, parts.spool, name));
  }
  copyDatabase(config.storage.path, join(made, parts.database));
  await systemFiles.syncPath(join(made, parts.database));
  const ownPepper = pepperPath(folder.path);
  if (pepper.source === ownPepper) await copyFile(ownPepper, join(made, parts.pepper));
  const id = folder.readId();
  if (id !== undefined) writeOnce(join(made, parts.installation), `${id}\n`);
}

async function writeManifest(made: string, io: CommandIo): Promise<Manifest> {
  const files: Record<string, string> = {};
  for (const name of filesIn(made)) files[name] = await digestOf(join(made, name));
  const madeAt = new Date(io.clock.now()).toISOString();
  const manifest: Manifest = { format: 1, version: io.version, madeAt, files };
  writeOnce(join(made, parts.manifest), `${JSON.stringify(manifest, null, 2)}\n`);
  return manifest;
}
