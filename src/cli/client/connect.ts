import { readFileSync } from "node:fs";
import { join } from "node:path";
import { errorCode } from "../../domain/system-files.ts";
import { Secret } from "../../domain/keys/secret.ts";
import type { Config } from "../../config/config.ts";
import type { AdminClient } from "./admin-client.ts";
import { CommandError, type CommandIo, unreadable, UsageError } from "../command.ts";
import { createHttpClient } from "./http-client.ts";
import { commandLine, settingsOptions } from "../program.ts";
import { readTextFile } from "../read-input.ts";
import type { SettingsArguments } from "../serve/load-settings.ts";
import { readRecord, readText } from "../output/reply-fields.ts";
import { hasParent } from "../../process/parent/restart-socket.ts";
import { demoDataDir } from "../../config/demo.ts";

/** Options of every command that uses the control plane, with their help texts. */
export const connectionOptions = [
  [
    "--url <url>",
    "Admin address of a gateway (default: SLUICE_ADMIN_URL, else the local gateway).",
  ],
  [
    "--token-file <file>",
    "Management token for it (default: SLUICE_ADMIN_TOKEN, else the local one).",
  ],
  ["--offline", "Work on the configured database, without a gateway."],
  ...settingsOptions,
] as const;

export interface ConnectionArguments extends SettingsArguments {
  readonly url: string | undefined;
  readonly tokenFile: string | undefined;
  readonly isOffline: boolean;
}

/**
 * Connects to the control plane of the named gateway, or of the one on this machine, which wrote
 * its address and a token to the data directory. Connects to the database only if asked to.
 */
export async function connect(chosen: ConnectionArguments, io: CommandIo): Promise<AdminClient> {
  if (chosen.isOffline) {
    if (chosen.url !== undefined || chosen.tokenFile !== undefined) {
      throw new UsageError("--offline works on the database; omit --url and --token-file");
    }
    const { createOfflineClient } = await import("./offline-client.ts");
    return createOfflineClient(await loadConfig(chosen, io), io);
  }
  const gateway = await findGateway(chosen, io);
  return createHttpClient({ ...gateway, random: io.random, signal: io.signal });
}

interface Gateway {
  readonly url: string;
  readonly token: Secret;
  /** Says more about a gateway that does not answer. */
  readonly advise: () => Promise<string>;
}

async function findGateway(chosen: ConnectionArguments, io: CommandIo): Promise<Gateway> {
  const url = chosen.url ?? io.environment.adminUrl;
  const token = readToken(chosen, io);
  if (url !== undefined) {
    checkUrl(url);
    if (token === undefined) {
      throw new UsageError(`${url} needs a management token: --token-file or SLUICE_ADMIN_TOKEN`);
    }
    const advice = "Is the gateway running, and is this its admin address?";
    return { url, token, advise: () => Promise.resolve(advice) };
  }
  const local = await readLocalAccess(await findDataDir(chosen, io, howToName));
  return { ...local, token: token ?? local.token };
}

const howToName = "Name the running gateway with --data-dir DIR, or with --url and --token-file.";

/** Loads the modules of the configuration, which few commands need. */
async function loadConfig(chosen: ConnectionArguments, io: CommandIo): Promise<Config> {
  const { loadSettings } = await import("../serve/load-settings.ts");
  return loadSettings(chosen, io).config;
}

function readToken(chosen: ConnectionArguments, io: CommandIo): Secret | undefined {
  if (chosen.tokenFile === undefined) return io.environment.adminToken;
  const text = readTextFile(chosen.tokenFile).trim();
  // Other characters are invalid in a header; the message does not repeat the token.
  if (/^[\x21-\x7e]{1,300}$/.test(text)) return new Secret(text);
  throw new CommandError(`${chosen.tokenFile} does not contain a management token`);
}

function checkUrl(text: string): void {
  const url = URL.parse(text);
  const isHttp = url?.protocol === "http:" || url?.protocol === "https:";
  if (isHttp && url.username === "" && url.search === "" && url.hash === "") return;
  throw new UsageError("--url takes the address of an admin listener, http://HOST:PORT");
}

/** Reads the address and the token that a running gateway wrote to its data directory. */
async function readLocalAccess(dataDir: string): Promise<Gateway> {
  const path = join(dataDir, "admin-access.json");
  const text = readAccessFile(path);
  if (text === undefined) throw new CommandError(await whyNoAccess(dataDir, path));
  const { url, token } = parseAccess(text, path);
  const advise = async (): Promise<string> =>
    (await adviceOnListener(dataDir)) ??
    `The gateway that wrote ${path} is not running. Start it with ` +
      `\`${commandLine("serve")}\`, or add --offline to work on the database.`;
  return { url, token: new Secret(token), advise };
}

/** Undefined if there is no such file. */
function readAccessFile(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (errorCode(error) !== "ENOENT") throw unreadable(path, error);
    return undefined;
  }
}

async function whyNoAccess(dataDir: string, path: string): Promise<string> {
  return (
    (await adviceOnListener(dataDir)) ??
    `no gateway runs on this configuration (there is no ${path}).
Start it with \`${commandLine("serve")}\`. If one runs, name its --data-dir or
--config, or, on another machine, its --url and --token-file; or add --offline to work on the
database.`
  );
}

/** Undefined if no gateway runs on the data directory. */
async function adviceOnListener(dataDir: string): Promise<string | undefined> {
  const lost = await findLostListener(dataDir);
  return lost === undefined ? undefined : `The gateway ${lost.text}.\nTo do: ${lost.advice}.`;
}

function parseAccess(text: string, path: string): { url: string; token: string } {
  try {
    const access = readRecord(JSON.parse(text));
    return { url: readText(access, "url"), token: readText(access, "token") };
  } catch {
    throw new CommandError(`${path}: does not contain the address and token of a gateway`);
  }
}

/** A gateway that serves calls, but whose admin listener does not answer. */
interface LostListener {
  /** A sentence without its first word, "The gateway", and its full stop. */
  readonly text: string;
  /** What to do, as a phrase. */
  readonly advice: string;
}

const lostListener: LostListener = {
  text:
    "runs, but its admin listener does not answer: calls go on with the keys and settings that its " +
    "processes have",
  advice:
    "read the reason at the end of the gateway's log. Once it is corrected, the listener starts by itself",
};

/** Explains why the admin listener does not answer; undefined if no gateway runs on the data directory. */
export async function findLostListener(dataDir: string): Promise<LostListener | undefined> {
  return (await hasParent(dataDir)) ? lostListener : undefined;
}

/**
 * The data directory of the gateway on this machine. Needs neither its variables nor a valid file,
 * beyond `data_dir`. `advice`: how else to name the gateway, for an error.
 */
export async function findDataDir(
  { config, "data-dir": named }: SettingsArguments,
  { environment }: Pick<CommandIo, "environment">,
  advice: string,
): Promise<string> {
  if (named !== undefined) return named;
  const path = config ?? environment.configPath;
  if (path === undefined) return demoDataDir;
  // Few commands need these modules.
  const { readConfigFile } = await import("../serve/read-config-file.ts");
  const { readDataDir } = await import("../../config/read-data-dir.ts");
  const found = readDataDir(
    readWithAdvice(() => readConfigFile(path), advice),
    environment.variables,
  );
  if (found !== undefined) return found;
  throw new CommandError(
    `${path}: data_dir cannot be read, so the running gateway cannot be found. ${advice} ` +
      `\`sluice check-config ${path}\` shows what is wrong with the file.`,
  );
}

function readWithAdvice(read: () => string, advice: string): string {
  try {
    return read();
  } catch (error) {
    throw error instanceof CommandError ? new CommandError(`${error.message}. ${advice}`) : error;
  }
}
