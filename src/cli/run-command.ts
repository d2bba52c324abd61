import { AdminRefusal } from "./client/admin-client.ts";
import { exitCodes } from "../process/exit-codes.ts";
import { CommandError, UsageError, type Command, type CommandIo } from "./command.ts";
import { commandLine } from "./program.ts";

/** Runs one command and says what is wrong; resolves with the exit code. */
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
      io.report(`See: ${commandLine(`${command.name} --help`)}`);
      return exitCodes.usage;
    }
    if (error instanceof CommandError) {
      io.report(error.message);
      // A value that the control plane does not take was typed wrongly.
      const isMistake = error instanceof AdminRefusal && error.status === 400;
      return isMistake ? exitCodes.usage : exitCodes.failed;
    }
    // Whoever asks a command to end knows why it did not get to its end.
    if (io.signal.aborted) return exitCodes.failed;
    throw error;
  }
}
