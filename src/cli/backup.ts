import { copyFileSync, existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { Database } from "bun:sqlite";
import type { Config } from "../config/config.ts";
import { exitCodes } from "../process/program.ts";
import { Installation } from "../store/installation/installation.ts";
import { inspectFile } from "../store/sqlite/connection/open-database.ts";
import { type Command, CommandError, type CommandIo, reasonOf } from "./command.ts";
import { addSettingsOptions, exitCodeHelp, settingsOf, type SettingsTyped } from "./program.ts";
import { loadSettings } from "./serve/load-settings.ts";

export const backupCommand: Command = (made, { io, action }) => {
  addSettingsOptions(made)
    .description(
      "Copies a gateway's data into FOLDER: the database as it is at one moment, the pepper of the " +
        "data directory and the id of the installation. The gateway may keep running. FOLDER " +
        "appears only once it is complete. Calls that wait in the spool are not in it, nor is a " +
        "pepper of auth.peppers. FOLDER contains secrets: keep it as safe as the data itself.",
    )
    .argument("<folder>", "It must not exist.")
    .addHelpText("after", exitCodeHelp("backup created", "not created"))
    .action(action((folder: string, options: SettingsTyped) => backup(folder, options, io)));
};

/** The files of a backup; those of the key material are in the data directory, too. */
export const backupFiles = { database: "sluice.db", keys: ["pepper", "installation"] } as const;

function backup(folder: string, options: SettingsTyped, io: CommandIo): number {
  if (existsSync(folder)) throw new CommandError(`${folder} exists; name a folder that does not`);
  const { config } = loadSettings(settingsOf(options), io);
  const keys = backupFiles.keys.filter((name) => existsSync(join(config.dataDir, name)));
  makeFolder(config, { folder, keys, io });
  io.print(`${folder}: ${[backupFiles.database, ...keys].join(", ")}`);
  if (config.auth.peppers.length > 0) {
    io.report("The pepper is that of auth.peppers, which is not in the backup: keep it, too.");
  }
  return exitCodes.ok;
}

interface NewBackup {
  readonly folder: string;
  readonly keys: readonly string[];
  readonly io: CommandIo;
}

function makeFolder(config: Config, { folder, keys, io }: NewBackup): void {
  const path = databaseFileOf(config, "backup");
  const made = `${resolve(folder)}.incomplete`;
  try {
    const database = inspectFile(path);
    if (database.state !== "filled") throw new CommandError(`${path} is ${database.state}`);
    new Installation(config, io).check(database);
    rmSync(made, { recursive: true, force: true });
    mkdirSync(made, { recursive: true, mode: 0o700 });
    for (const name of keys) copyFileSync(join(config.dataDir, name), join(made, name));
    copyDatabase(path, join(made, backupFiles.database));
    renameSync(made, folder);
  } catch (error) {
    rmSync(made, { recursive: true, force: true });
    throw new CommandError(`the backup could not be made: ${reasonOf(error)}`);
  }
}

/**
 * As it is at one moment, while others read and write it; reads every page. Responses, which are
 * stored for a short time, are left out, and their bytes are overwritten.
 */
function copyDatabase(path: string, target: string): void {
  using database = new Database(path, { readonly: true });
  database.run("PRAGMA busy_timeout = 10000");
  database.query<unknown, [string]>("VACUUM INTO ?").run(target);
  using copy = new Database(target);
  copy.run("PRAGMA journal_mode = MEMORY");
  copy.run("PRAGMA secure_delete = ON");
  copy.run("DELETE FROM stored_responses");
}

/** The file of the database, for a command that works with files. */
export function databaseFileOf({ storage }: Pick<Config, "storage">, command: string): string {
  if (storage.backend === "sqlite") return storage.path;
  throw new CommandError(
    `${command} works with SQLite only, and storage.url is ${storage.path}; use PostgreSQL's own tools`,
  );
}
