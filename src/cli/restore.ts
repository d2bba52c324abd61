import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
} from "node:fs";
import { dirname, join } from "node:path";
import type { Config } from "../config/config.ts";
import { Peppers } from "../domain/keys/peppers.ts";
import { Secret } from "../domain/keys/secret.ts";
import { exitCodes } from "../process/program.ts";
import { refuseOtherSchema } from "../store/repositories/schema.ts";
import { inspectFile } from "../store/sqlite/connection/open-database.ts";
import { backupFiles, databaseFileOf } from "./backup.ts";
import { type Command, CommandError, type CommandIo, reasonOf } from "./command.ts";
import { addSettingsOptions, exitCodeHelp, settingsOf, type SettingsTyped } from "./program.ts";
import { loadSettings } from "./serve/load-settings.ts";

export const restoreCommand: Command = (made, { io, action }) => {
  addSettingsOptions(made)
    .description(
      "Copies a backup that `sluice backup` made to the places that the configuration names, once " +
        "it has checked the version of the database and that the pepper belongs to its keys. Stop " +
        "the gateway first. The command overwrites nothing: move the database away before, with " +
        "its -wal and -shm. A pepper and an installation that are the same stay, and so does the " +
        "spool. Run it as the user of the gateway.",
    )
    .argument("<folder>", "The backup.")
    .addHelpText("after", exitCodeHelp("restored", "not restored"))
    .action(action((folder: string, options: SettingsTyped) => restore(folder, options, io)));
};

function restore(folder: string, options: SettingsTyped, io: CommandIo): number {
  const { config } = loadSettings(settingsOf(options), io);
  const path = databaseFileOf(config, "restore");
  try {
    checkBackup(folder, config);
    const keys = keysToCopy(folder, config);
    refuseDatabase(path);
    mkdirSync(config.dataDir, { recursive: true, mode: 0o700 });
    for (const name of keys) place(join(folder, name), join(config.dataDir, name));
    // Last: a start without a database creates nothing where there is an installation.
    place(join(folder, backupFiles.database), path);
  } catch (error) {
    throw new CommandError(`not restored: ${reasonOf(error)}`);
  }
  io.print(`restored ${path}; changes after the backup are not in it`);
  return exitCodes.ok;
}

/** Checks that this program can use a backup with the peppers of a configuration. */
function checkBackup(folder: string, { auth }: Config): void {
  const path = join(folder, backupFiles.database);
  if (!existsSync(path)) throw new CommandError(`there is no ${path}`);
  const database = inspectFile(path);
  refuseOtherSchema(database);
  const pepper = join(folder, "pepper");
  const [first, ...older] = auth.peppers;
  if (first === undefined && !existsSync(pepper)) {
    throw new CommandError("the backup has no pepper: name the one of its keys in auth.peppers");
  }
  if (database.pepperMark === undefined) return;
  const own = first ?? new Secret(readFileSync(pepper, "utf8").trim());
  if (new Peppers(own, older).find(database.pepperMark) !== undefined) return;
  const source = first === undefined ? pepper : "auth.peppers";
  throw new CommandError(`the keys of the backup need another pepper than that of ${source}`);
}

/** The pepper of the backup is not needed beside those of the configuration. */
function keysToCopy(folder: string, { auth, dataDir }: Config): readonly string[] {
  const names = backupFiles.keys.filter((name) => name !== "pepper" || auth.peppers.length === 0);
  return names.filter((name) => {
    const [from, to] = [join(folder, name), join(dataDir, name)];
    if (!existsSync(from)) return false;
    if (!existsSync(to)) return true;
    if (readFileSync(from).equals(readFileSync(to))) return false;
    throw new CommandError(`there is another ${to}; move it away first`);
  });
}

function refuseDatabase(path: string): void {
  const found = ["", "-wal", "-shm"].map((end) => path + end).filter((file) => existsSync(file));
  if (found.length > 0) throw new CommandError(`there is ${found.join(", ")}; move it away first`);
}

/** Under another name first, so that an interruption leaves no half of a file. */
function place(from: string, to: string): void {
  mkdirSync(dirname(to), { recursive: true });
  const half = `${to}.restoring`;
  rmSync(half, { force: true });
  copyFileSync(from, half);
  chmodSync(half, 0o600);
  renameSync(half, to);
}
