import { resolve } from "node:path";
import type { Config } from "../../config/config.ts";
import type { IssuedToken } from "../../control/sign-in/bootstrap/bootstrap.ts";
import { readLocalAccess } from "../../control/sign-in/bootstrap/local-access.ts";
import type { Clock } from "../../domain/clock.ts";
import { errorCode } from "../../domain/system-files.ts";
import { FolderInUse } from "../../ledger/spool/folder-lock.ts";
import { createLogger, type Logger } from "../../telemetry/log/logger.ts";
import { CommandError, reasonOf, type CommandIo } from "../command.ts";
import { commandLine } from "../program.ts";
import type { SettingsArguments } from "./load-settings.ts";

type LogForm = Pick<Config, "telemetry">;

/**
 * Explains how to create the first operator. Prints a generated bootstrap token; a configured one
 * stays out of terminals and logs. JSON logs are collected, so they contain no token.
 */
export function printBootstrap(
  { text, isConfigured }: IssuedToken,
  { values, config }: { readonly values: SettingsArguments; readonly config: LogForm },
  io: CommandIo,
): void {
  const create = commandLine(
    "users create you@example.com --role operator --password-file -",
    values,
  );
  if (config.telemetry.logFormat === "json") {
    const message = "nobody can sign in to the control plane yet";
    const fields = { make_first_operator: create };
    return loggerOf(config, io.clock, io.report).log("warn", message, fields);
  }
  const token = isConfigured ? "the configured bootstrap token" : `the one-time token ${text}`;
  io.report(`Nobody can sign in to the control plane yet. Create the first operator within an hour,
with ${token} (POST /admin/v1/bootstrap),
or on this machine:

  ${create}
`);
}

/** Why a start failed. The message may be a line of the log. */
export class StartError extends CommandError {
  readonly reason: string;

  constructor(reason: string, message: string) {
    super(message);
    this.reason = reason;
  }
}

/** The error for a failed start, as a line of the log if the log is JSON. */
export function startError(reason: string, config: LogForm, io: CommandIo): StartError {
  const { logFormat } = config.telemetry;
  if (logFormat === "text") return new StartError(reason, `cannot start: ${reason}`);
  let line = "";
  loggerOf(config, io.clock, (written) => (line = written)).log("error", "cannot start", {
    reason,
  });
  return new StartError(reason, line);
}

function loggerOf({ telemetry }: LogForm, clock: Clock, write: (line: string) => void): Logger {
  const { logLevel: level, logFormat: format } = telemetry;
  return createLogger({ level, format, clock, write });
}

export function explainStart(error: unknown, dataDir: string): string {
  if (error instanceof FolderInUse) return whoUses(dataDir);
  if (isAbout(error, dataDir)) {
    return (
      `the data directory ${dataDir} cannot be used (${causeOf(error)}).\n` +
      "Let the user of the gateway write there, or name another: --data-dir, or `data_dir`."
    );
  }
  return `${reasonOf(error)}${adviceFor(error)}`;
}

function isAbout(error: unknown, dataDir: string): boolean {
  if (!(error instanceof Error) || !("path" in error)) return false;
  return resolve(String(error.path)).startsWith(resolve(dataDir)) && errorCode(error) !== undefined;
}

/** `EROFS: read-only file system`, without the operation and the path that the runtime adds. */
function causeOf(error: unknown): string {
  return reasonOf(error).split(",", 1)[0] ?? "";
}

function whoUses(dataDir: string): string {
  const { pid, startedAt, url } = readLocalAccess(dataDir) ?? {};
  const since = startedAt === undefined ? "" : ` since ${new Date(startedAt).toISOString()}`;
  const who = pid === undefined ? "another process" : `process ${pid}`;
  return (
    `${who} is using the data directory ${dataDir}${since}` +
    (url === undefined ? "" : ` (its admin address is ${url})`) +
    "; stop it, or start this gateway with its own directory and addresses: --data-dir, --data, --admin"
  );
}

function adviceFor(error: unknown): string {
  const isPort = error instanceof Error && error.message.startsWith("cannot listen");
  return isPort ? "\nOther addresses: --data HOST:PORT and --admin HOST:PORT, or `listen`." : "";
}
