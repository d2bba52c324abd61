import { AdminRefusal } from "./client/admin-client.ts";
import { exitCodes } from "../process/exit-codes.ts";
import { CommandError, UsageError, type Command, type CommandIo } from "./command.ts";
import { commandLine } from "./program.ts";

/** Runs one command and reports its error; resolves with the exit code. */
export async function runCommand(
  command: Command,
  args: readonly string[],
  io: CommandIo,
): Promise<number> {
  if (command.isService === true) io.outliveReaders();
  try {
    return await command.run(args, io);
  } catch (error) {
    if (error instanceof UsageError) {
      io.report(`sluice ${command.name}: ${error.message}`);
      io.report(`See: ${commandLine(`${helpedWords(command, args)} --help`)}`);
      return exitCodes.usage;
    }
    if (error instanceof CommandError) {
      io.report(error.message);
      // If the control plane refuses a value, it was mistyped.
      const isMistake = error instanceof AdminRefusal && error.status === 400;
      return isMistake ? exitCodes.usage : exitCodes.failed;
    }
    // A command that was asked to end needs no explanation.
    if (io.signal.aborted) return exitCodes.failed;
    throw error;
  }
}

/** The command, with its verb if the verb has its own help. */
function helpedWords(command: Command, [verb = ""]: readonly string[]): string {
  const isVerb = verb !== "" && command.help([verb]) !== command.help([]);
  return isVerb ? `${command.name} ${verb}` : command.name;
}
