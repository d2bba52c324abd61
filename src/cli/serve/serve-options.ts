import { resolve } from "node:path";
import type { Config } from "../../config/config.ts";
import { AskedToEnd, readArguments, reasonOf, UsageError, type CommandIo } from "../command.ts";
import type { IssuedToken, ShownToken } from "../../control/sign-in/bootstrap/bootstrap.ts";
import { readLocalAccess } from "../../control/sign-in/bootstrap/local-access.ts";
import { errorCode } from "../../domain/errors/error-code.ts";
import { FolderInUse } from "../../ledger/spool/folder-lock.ts";
import { commandLine } from "../program.ts";
import { readAddress, settingsOptions, type SettingsArguments } from "./load-settings.ts";

const options = {
  ...settingsOptions,
  data: { type: "string" },
  admin: { type: "string" },
  unsupervised: { type: "boolean" },
  init: { type: "boolean" },
  // For successors of the first process, which must not replace data that was lost later,
  "no-init": { type: "boolean" },
  // nor introduce the demo again,
  introduced: { type: "boolean" },
  // nor print another bootstrap token than this one, as EXPIRES:TOKEN.
  "shown-token": { type: "string" },
} as const;

/** The arguments of `serve`. */
export interface ServeArguments extends SettingsArguments {
  readonly data?: string | undefined;
  readonly admin?: string | undefined;
  /** Whether data that is missing is begun anew. */
  readonly begins: boolean;
  /** Whether the demo was introduced by an earlier process. */
  readonly introduced?: boolean | undefined;
  /** The bootstrap token that an earlier process has printed. */
  readonly shownToken: ShownToken | undefined;
}

/** Throws `UsageError`. */
export function readServeArguments(args: readonly string[]): ServeArguments {
  const { values, positionals } = readArguments(args, options);
  if (positionals.length > 0) throw new UsageError(`serve does not take '${positionals[0]}'`);
  const begins = values.init === true && values["no-init"] !== true;
  const [expiresAt, text] = values["shown-token"]?.split(":") ?? [];
  const shownToken = text === undefined ? undefined : { text, expiresAt: Number(expiresAt) };
  return { ...values, begins, shownToken };
}

/** The configuration with the addresses of the command line. */
export function withListeners(config: Config, { data, admin }: ServeArguments): Config {
  const { listen } = config;
  return {
    ...config,
    listen: {
      data: data === undefined ? listen.data : readAddress(data),
      admin: admin === undefined ? listen.admin : readAddress(admin),
    },
  };
}

/** Arguments that make a successor serve at the port that the system has chosen. */
export function fixedAddress(listener: "data" | "admin", port: number, url: string) {
  return port === 0 ? [`--${listener}`, new URL(url).host] : [];
}

/**
 * Prints a generated bootstrap token; one from the configuration stays out of terminals and logs.
 */
export function printBootstrap(
  { text, isConfigured }: IssuedToken,
  values: SettingsArguments,
  io: CommandIo,
): void {
  const token = isConfigured ? "the configured bootstrap token" : `the one-time token ${text}`;
  const create = "users create you@example.com --role operator --password-file -";
  io.report(`Nobody can sign in to the control plane yet. The first operator is made within an hour
with ${token} (POST /admin/v1/bootstrap),
or on this machine:

  ${commandLine(create, values)}
`);
}

/** The message for a start that failed. */
export async function startFailure(error: unknown, dataDir: string): Promise<string> {
  if (error instanceof FolderInUse) return `cannot start: ${await whoUses(dataDir)}`;
  if (isAbout(error, dataDir)) {
    return (
      `cannot start: the data directory ${dataDir} cannot be used (${errorCode(error)}).\n` +
      "Let the user of the gateway write there, or name another: --data-dir, or `data_dir`."
    );
  }
  return `cannot start: ${reasonOf(error)}${adviceFor(error)}`;
}

/** Whether an operation on a file of the data directory failed. */
function isAbout(error: unknown, dataDir: string): boolean {
  if (!(error instanceof Error) || !("path" in error)) return false;
  return resolve(String(error.path)).startsWith(resolve(dataDir)) && errorCode(error) !== undefined;
}

/** Names the gateway that has a data directory. */
export async function whoUses(dataDir: string): Promise<string> {
  const { pid, startedAt, url } = (await readLocalAccess(dataDir)) ?? {};
  const since = startedAt === undefined ? "" : ` since ${new Date(startedAt).toISOString()}`;
  const who = pid === undefined ? "another process" : `process ${pid}`;
  return (
    `${who} is using the data directory ${dataDir}${since}` +
    (url === undefined ? "." : ` (its admin address is ${url}).`) +
    "\nStop it, or start this gateway with its own directory and addresses: --data-dir, " +
    "--data, --admin."
  );
}

function adviceFor(error: unknown): string {
  const isPort = error instanceof Error && error.message.startsWith("cannot listen");
  return isPort ? "\nOther addresses: --data HOST:PORT and --admin HOST:PORT, or `listen`." : "";
}

/** Whether a person at a terminal ends the process, which skips the wait for balancers. */
export function isAskedByPerson({ reason }: AbortSignal): boolean {
  return reason instanceof AskedToEnd && reason.by === "SIGINT";
}

export function untilAsked(signal: AbortSignal): Promise<undefined> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(undefined);
    else signal.addEventListener("abort", () => resolve(undefined), { once: true });
  });
}
