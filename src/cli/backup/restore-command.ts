import { exitCodes } from "../../process/exit-codes.ts";
import { readArguments, UsageError, type Command, type CommandIo } from "../command.ts";
import { loadSettings, settingsOptions } from "../serve/load-settings.ts";
import { restoreBackup } from "./restore-backup.ts";
import { verifyBackup } from "./verify-backup.ts";

const options = {
  ...settingsOptions,
  verify: { type: "boolean" },
  replace: { type: "boolean" },
  running: { type: "boolean" },
} as const;

export const restoreCommand: Command = {
  name: "restore",
  help: () => `Usage: sluice restore FOLDER [--verify | --replace | --running] [--config FILE]

Verifies a backup that \`sluice backup\` made (every file, the pages of the database, its version, and
that the pepper belongs to its keys), and copies it to the places that the configuration names.
Refuses to overwrite data, and to run while a gateway uses it. Run it as the user of the gateway.

Options:
  --verify            only verify the backup
  --replace           move existing data aside
  --running           restore only the database, for a running gateway, which carries on by itself
  -c, --config FILE   configuration of the gateway (default: SLUICE_CONFIG, else ./sluice.yaml, else
                      /etc/sluice/sluice.yaml)
  --data-dir DIR      where it keeps its state, instead of the configured directory

Exit code: 0 restored, 1 not restored, 2 wrong usage.`,
  run: (args, io) => restore(args, io),
};

async function restore(args: readonly string[], io: CommandIo): Promise<number> {
  const { values, positionals } = readArguments(args, options);
  const [folder, ...others] = positionals;
  if (folder === undefined || others.length > 0) throw new UsageError("name one backup");
  const { verify = false, replace: replaces = false, running: isRunning = false } = values;
  if ([verify, replaces, isRunning].filter(Boolean).length > 1) {
    throw new UsageError("--verify, --replace and --running exclude each other");
  }
  const { config } = loadSettings(values, io);
  if (verify) {
    const { manifest } = await verifyBackup(folder, config);
    io.print(`${folder}: good, made at ${manifest.madeAt} by ${manifest.version}`);
    return exitCodes.ok;
  }
  const { manifest, aside } = await restoreBackup({ config, folder, replaces, isRunning }, io);
  io.print(`restored the state of ${manifest.madeAt}; later changes are not in it`);
  if (aside.length > 0) io.print(`the previous data is in ${aside.join(", ")}`);
  return exitCodes.ok;
}
