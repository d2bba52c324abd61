import { readFileSync, statSync } from "node:fs";
import { oddKind } from "../../domain/system-files.ts";
import { CommandError, unreadable } from "../command.ts";

/** Refuses a FIFO, which can be read once, because processes and reloads read the file again. */
export function readConfigFile(path: string): string {
  try {
    const odd = oddKind(statSync(path));
    if (odd !== undefined) throw new CommandError(`${path}: is ${odd}; it must be a file`);
    return readFileSync(path, "utf8");
  } catch (error) {
    throw error instanceof CommandError ? error : unreadable(path, error);
  }
}
