import { resolve } from "node:path";
import { exitCodes } from "../process/exit-codes.ts";
import { askForRestart, restartSocketPath } from "../process/supervisor/restart/restart-socket.ts";
import {
  CommandError,
  readArguments,
  UsageError,
  type Command,
  type CommandIo,
} from "./command.ts";
import { findDataDir } from "./client/find-data-dir.ts";
import { settingsOptions } from "./serve/load-settings.ts";

export const restartCommand: Command = {
  name: "restart",
  help: () => `Usage: sluice restart [--config FILE] [--data-dir DIR]

Replaces the control process and the workers of the running gateway, one by one, with the program that
is installed now; they reload the configuration. Calls continue: new connections go to the new
processes, and the old ones finish theirs within shutdown.drain_timeout. The control plane pauses for a
moment. The new control process checks the configuration and the database before the old one ends. If
a new process does not start, the old ones keep running, and the reason is printed. The command ends
when the new processes serve.

Options:
  -c, --config FILE   configuration of the gateway (default: SLUICE_CONFIG, else ./sluice.yaml, else
                      /etc/sluice/sluice.yaml)
  --data-dir DIR      where it keeps its state, instead of the configured directory

Exit code: 0 restarted, 1 not restarted, 2 wrong usage.`,
  run: (args, io) => restart(args, io),
};

async function restart(args: readonly string[], io: CommandIo): Promise<number> {
  const { values, positionals } = readArguments(args, settingsOptions);
  if (positionals.length > 0) throw new UsageError(`restart does not take '${positionals[0]}'`);
  const advice = "Name the data directory of the running gateway with --data-dir DIR.";
  const dataDir = await findDataDir(values, io, advice);
  const problem = await ask(resolve(dataDir));
  if (problem !== undefined) throw new CommandError(`not restarted: ${problem}`);
  io.report("restarted");
  return exitCodes.ok;
}

async function ask(dataDir: string): Promise<string | undefined> {
  try {
    return await askForRestart(restartSocketPath(dataDir));
  } catch {
    throw new CommandError(
      `no gateway with a supervisor runs on ${dataDir}; if one runs, name its --data-dir or --config`,
    );
  }
}
