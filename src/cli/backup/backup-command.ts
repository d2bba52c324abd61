import { exitCodes } from "../../process/exit-codes.ts";
import { readArguments, UsageError, type Command, type CommandIo } from "../command.ts";
import { loadSettings, settingsOptions } from "../serve/load-settings.ts";
import { makeBackup } from "./make-backup.ts";

export const backupCommand: Command = {
  name: "backup",
  help: () => `Usage: sluice backup FOLDER [--config FILE] [--data-dir DIR]

Copies a gateway's data into FOLDER, which must not exist: the database as it is at one moment, the
pepper of the data directory, the id of the installation, and calls that are not in the database yet.
The gateway may keep running. FOLDER appears only once the copy is complete and verified. A pepper
of auth.peppers is not copied. FOLDER contains secrets: keep it as safe as the data itself.

Options:
  -c, --config FILE   configuration of the gateway (default: SLUICE_CONFIG, else ./sluice.yaml, else
                      /etc/sluice/sluice.yaml)
  --data-dir DIR      where it keeps its state, instead of the configured directory

Exit code: 0 backup created, 1 not created, 2 wrong usage.`,
  run: (args, io) => backup(args, io),
};

async function backup(args: readonly string[], io: CommandIo): Promise<number> {
  const { values, positionals } = readArguments(args, settingsOptions);
  const [folder, ...others] = positionals;
  if (folder === undefined || others.length > 0) throw new UsageError("name one folder to create");
  const { config } = loadSettings(values, io);
  const { files } = await makeBackup(config, folder, io);
  io.print(`${folder}: ${Object.keys(files).join(", ")}`);
  if (files["pepper"] === undefined) {
    io.report("The pepper is that of auth.peppers, which is not in the backup: keep it, too.");
  }
  return exitCodes.ok;
}
