import type { ParseArgsConfig } from "node:util";
import { parseArgs } from "node:util";
import type { ProcessEnvironment } from "../config/environment.ts";

/** What a command may touch of the process. */
export interface CommandIo {
  readonly environment: ProcessEnvironment;
  /** A line on standard output: results. */
  readonly print: (line: string) => void;
  /** A line on standard error: progress and problems. */
  readonly report: (line: string) => void;
  /** Fires when the process is asked to end. */
  readonly signal: AbortSignal;
  /** Calls back whenever the process is asked to read its configuration again. */
  readonly onReload: (callback: () => void) => void;
}

export interface Command {
  readonly name: string;
  readonly summary: string;
  /** Shown by `--help`. */
  readonly help: string;
  /** Resolves with the exit code. Throws `UsageError` for arguments that make no sense. */
  run(args: readonly string[], io: CommandIo): Promise<number>;
}

/** Exit codes: what a script can tell apart. */
export const exitCodes = { ok: 0, failed: 1, usage: 2 } as const;

/** The command was called wrongly; the message says how to call it. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** A step failed for a reason that the operator can act on. */
export class CommandError extends Error {
  override readonly name = "CommandError";
}

type Options = NonNullable<ParseArgsConfig["options"]>;

/** Reads options and positionals; what is unknown or lacks its value is a `UsageError`. */
export function readArguments<Wanted extends Options>(args: readonly string[], options: Wanted) {
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true, strict: true });
  } catch (error) {
    // The first sentence names the option; what follows is about quoting.
    const message = error instanceof Error ? error.message : String(error);
    throw new UsageError(message.split(". ", 1)[0] ?? message);
  }
}
