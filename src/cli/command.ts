import type { Command as Parser } from "commander";
import type { ProcessEnvironment } from "../config/environment.ts";
import { errorCode } from "../domain/system-files.ts";
import type { RandomBytes } from "../domain/keys/base62.ts";
import type { Clock } from "../domain/clock.ts";
import type { LogSink } from "../telemetry/log/log-output.ts";
import { exitCodes } from "../process/program.ts";
import type { ParentLink } from "../process/parent/parent-link.ts";

/** The parts of the process that a command may use. */
export interface CommandIo {
  readonly version: string;
  readonly environment: ProcessEnvironment;
  /** Prints a line of results to standard output. */
  readonly print: (line: string) => void;
  /** Prints a line of progress or problems to standard error. */
  readonly report: (line: string) => void;
  /** Writes bytes to standard output; resolves once they are accepted, or to false. */
  readonly write: (bytes: Uint8Array) => Promise<boolean>;
  readonly log: LogSink;
  /** Makes the command a service, which continues without readers of its output. */
  readonly outliveReaders: () => void;
  readonly input: StandardInput;
  readonly clock: Clock;
  readonly random: RandomBytes;
  /** Aborts when the process is asked to end; the reason is an `AskedToEnd`. */
  readonly signal: AbortSignal;
  /** Called when the process is asked to reload its configuration. */
  readonly onReload: (callback: () => void) => void;
  /**
   * Called when the gateway serves; `addresses` are arguments that make a successor serve at the
   * same addresses. From then on uncaught exceptions are reported without their message.
   */
  readonly tellStarted: (addresses: readonly string[]) => void;
  /** The process that starts this one again after a crash. */
  readonly parent?: ParentLink | undefined;
}

export interface StandardInput {
  readonly isTerminal: boolean;
  chunks(): AsyncIterable<Uint8Array>;
  setEcho(isOn: boolean): void;
}

/** A command by its name; its modules are loaded when it is used. */
export interface CommandEntry {
  readonly name: string;
  readonly summary: string;
  readonly load: () => Promise<Command>;
}

/** Adds description, arguments, options, verbs and actions to a command of the program. */
export type Command = (made: Parser, run: CommandRun) => void;

export interface CommandRun {
  readonly io: CommandIo;
  /** An action that ends with an exit code, or throws a `CommandError`. */
  readonly action: <Typed extends readonly unknown[]>(
    step: (...typed: Typed) => number | Promise<number>,
  ) => (...typed: Typed) => Promise<void>;
}

/** A request to end the process: SIGTERM by a machine, SIGINT by a person at a terminal. */
export class AskedToEnd extends Error {
  override readonly name = "AskedToEnd";
  readonly by: EndSignal;

  constructor(by: EndSignal) {
    super(`stopped by ${by}`);
    this.by = by;
  }
}

export function untilAsked(signal: AbortSignal): Promise<undefined> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(undefined);
    else signal.addEventListener("abort", () => resolve(undefined), { once: true });
  });
}

export type EndSignal = "SIGTERM" | "SIGINT";

/** A step failed for a reason that the operator can act on. */
export class CommandError extends Error {
  override readonly name: string = "CommandError";
  readonly exitCode: number = exitCodes.failed;
}

export class UsageError extends CommandError {
  override readonly exitCode = exitCodes.usage;
}

export function reportError(error: unknown, io: Pick<CommandIo, "report" | "signal">): number {
  if (error instanceof CommandError) {
    io.report(error.message);
    return error.exitCode;
  }
  // A command that was asked to end needs no explanation.
  if (io.signal.aborted) return exitCodes.failed;
  throw error;
}

export function unreadable(path: string, error: unknown, advice = ""): CommandError {
  const problem = `${path}: cannot be read (${errorCode(error) ?? "unreadable"})`;
  return new CommandError(advice === "" ? problem : `${problem}. ${advice}`);
}

export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause === undefined ? error.message : `${error.message}: ${reasonOf(error.cause)}`;
}
