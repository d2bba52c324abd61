import type { ParseArgsConfig } from "node:util";
import { parseArgs } from "node:util";
import type { ProcessEnvironment } from "../config/environment.ts";
import type { RandomBytes } from "../domain/keys/base62.ts";
import type { Clock } from "../domain/clock.ts";
import type { LogSink } from "../telemetry/log/log-output.ts";
import type { SupervisorLink } from "../process/supervisor/supervisor-link.ts";

/** What a command may touch of the process. */
export interface CommandIo {
  readonly environment: ProcessEnvironment;
  /** A line on standard output: results. */
  readonly print: (line: string) => void;
  /** A line on standard error: progress and problems. */
  readonly report: (line: string) => void;
  /** Bytes on standard output; resolves once they are taken. False when they are not. */
  readonly write: (bytes: Uint8Array) => Promise<boolean>;
  /** Where a service logs, on standard error. */
  readonly log: LogSink;
  /** The command is a service: it runs on whatever becomes of its output. */
  readonly outliveReaders: () => void;
  readonly input: StandardInput;
  readonly clock: Clock;
  readonly random: RandomBytes;
  /** Fires when the process is asked to end; the reason is an `AskedToEnd`. */
  readonly signal: AbortSignal;
  /** Calls back whenever the process is asked to read its configuration again. */
  readonly onReload: (callback: () => void) => void;
  /**
   * The gateway serves; with these arguments a successor serves at the same addresses. An exception
   * that nobody catches is told without its message from here on.
   */
  readonly tellStarted: (addresses: readonly string[]) => void;
  /** The process that starts this one again when it ends unasked. */
  readonly supervisor?: SupervisorLink | undefined;
}

export interface StandardInput {
  /** Whether somebody types there. */
  readonly isTerminal: boolean;
  /** What is typed, or piped, as it comes. */
  chunks(): AsyncIterable<Uint8Array>;
  /** Whether a terminal shows what is typed and hands it over by lines. */
  setEcho(isOn: boolean): void;
}

export interface Command {
  readonly name: string;
  readonly summary: string;
  /** Whether it runs until it is asked to end. */
  readonly isService?: boolean;
  /** Shown by `--help`; the arguments tell which part is asked for. */
  help(args: readonly string[]): string;
  /** Resolves with the exit code. Throws `UsageError` for arguments that make no sense. */
  run(args: readonly string[], io: CommandIo): Promise<number>;
}

/** Somebody wants the process to end: with SIGTERM a machine, with SIGINT a person who waits. */
export class AskedToEnd extends Error {
  override readonly name = "AskedToEnd";
  readonly by: EndSignal;

  constructor(by: EndSignal) {
    super(`asked to end by ${by}`);
    this.by = by;
  }
}

export type EndSignal = "SIGTERM" | "SIGINT";

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
