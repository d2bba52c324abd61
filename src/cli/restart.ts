import { resolve } from "node:path";
import { exitCodes } from "../process/program.ts";
import { askForRestart } from "../process/parent/restart-socket.ts";
import { findDataDir } from "./client/connect.ts";
import { CommandError, type Command } from "./command.ts";
import { addSettingsOptions, exitCodeHelp, settingsOf, type SettingsTyped } from "./program.ts";

export const restartCommand: Command = (made, { io, action }) => {
  addSettingsOptions(made)
    .description(
      "Replaces the processes of the running gateway, one by one, with the program that is " +
        "installed now; they reload the configuration. Calls continue: new connections go to the " +
        "new processes, and the old ones finish theirs within shutdown.drain_timeout. If a new " +
        "process does not start, the old ones keep running, and the reason is printed. The " +
        "command ends when the new processes serve.",
    )
    .addHelpText("after", exitCodeHelp("restarted", "not restarted"))
    .action(
      action(async (options: SettingsTyped) => {
        const advice = "Name the data directory of the running gateway with --data-dir DIR.";
        const dataDir = await findDataDir(settingsOf(options), io, advice);
        const problem = await ask(resolve(dataDir));
        if (problem !== undefined) throw new CommandError(`not restarted: ${problem}`);
        io.report("restarted");
        return exitCodes.ok;
      }),
    );
};

async function ask(dataDir: string): Promise<string | undefined> {
  try {
    return await askForRestart(dataDir);
  } catch {
    throw new CommandError(
      `no gateway runs on ${dataDir}; if one runs, name its --data-dir or --config`,
    );
  }
}
