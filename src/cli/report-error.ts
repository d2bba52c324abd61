import { exitCodes } from "../process/exit-codes.ts";
import { AdminRefusal } from "./client/admin-client.ts";
import { CommandError, UsageError, type CommandIo } from "./command.ts";
import { commandLine } from "./program.ts";

/** Reports the error of a command; returns its exit code. `words` name the command. */
export function reportError(error: unknown, words: string, io: CommandIo): number {
  if (error instanceof UsageError) {
    const [name = ""] = words.split(" ");
    io.report(`${name === "sluice" ? name : `sluice ${name}`}: ${error.message}`);
    io.report(`See: ${commandLine(name === "sluice" ? "--help" : `${words} --help`)}`);
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
