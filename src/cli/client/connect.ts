import { resolve } from "node:path";
import { Secret } from "../../domain/keys/secret.ts";
import type { AdminClient } from "./admin-client.ts";
import { CommandError, type CommandIo, UsageError } from "../command.ts";
import { createHttpClient } from "./http-client.ts";
import { commandLine, settingsOptions } from "../program.ts";
import { readConfigFile, readTextFile } from "../read-input.ts";
import type { SettingsArguments } from "../serve/load-settings.ts";
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
  readonly url?: string | undefined;
  readonly tokenFile?: string | undefined;
  readonly isOffline?: boolean;
}

/**
 * Connects to the control plane of the named gateway, or of the one on this machine, which wrote
 * its address and a token to the data directory. Connects to the database only if asked to.
 */
export async function connect(chosen: ConnectionArguments, io: CommandIo): Promise<AdminClient> {
  if (chosen.isOffline === true) {
    if (chosen.url !== undefined || chosen.tokenFile !== undefined) {
      throw new UsageError("--offline works on the database; omit --url and --token-file");
    }
    // Few commands need the modules of configuration and database.
    const { loadSettings } = await import("../serve/load-settings.ts");
    const { createOfflineClient } = await import("./offline-client.ts");
    return createOfflineClient(loadSettings(chosen, io).config, io);
  }
  const gateway = await findGateway(chosen, io);
  return createHttpClient({ ...gateway, random: io.random, signal: io.signal });
}

interface Gateway {
  readonly url: string;
  readonly token: Secret;
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
  const local = await findLocal(await findDataDir(chosen, io, howToName));
  return { ...local, token: token ?? local.token };
}

const howToName = "Name the running gateway with --data-dir DIR, or with --url and --token-file.";

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
async function findLocal(dataDir: string): Promise<Gateway> {
  const { readLocalAccess } = await import("../../control/sign-in/bootstrap/local-access.ts");
  const found = readLocalAccess(dataDir);
  const advise = async (): Promise<string> => {
    const lost = await findLostListener(dataDir);
    if (lost !== undefined) return `The gateway ${lost.text}.\nTo do: ${lost.advice}.`;
    return found === undefined
      ? `no gateway runs on this configuration (${dataDir} has no readable admin-access.json).
Start it with \`${commandLine("serve")}\`. If one runs, name its --data-dir or
--config, or, on another machine, its --url and --token-file; or add --offline to work on the
database.`
      : `The gateway that wrote ${dataDir}/admin-access.json is not running. Start it with ` +
          `\`${commandLine("serve")}\`, or add --offline to work on the database.`;
  };
  if (found === undefined) throw new CommandError(await advise());
  return { url: found.url, token: new Secret(found.token), advise };
}

/** A gateway that serves calls, but whose admin listener does not answer. */
const lostListener = {
  /** A sentence without its first word, "The gateway", and its full stop. */
  text:
    "runs, but its admin listener does not answer: calls go on with the keys and settings that its " +
    "processes have",
  /** What to do, as a phrase. */
  advice:
    "read the reason at the end of the gateway's log. Once it is corrected, the listener starts by itself",
};

/** Why the admin listener does not answer; undefined if no gateway runs on the data directory. */
export async function findLostListener(dataDir: string): Promise<typeof lostListener | undefined> {
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
  if (named !== undefined) return resolve(named);
  const path = config ?? environment.configPath;
  if (path === undefined) return resolve(demoDataDir);
  // Few commands need this module.
  const { readDataDir } = await import("../../config/read-data-dir.ts");
  const found = readDataDir(readConfigFile(path, advice), environment.variables);
  if (found !== undefined) return resolve(found);
  throw new CommandError(
    `${path}: data_dir cannot be read, so the running gateway cannot be found. ${advice} ` +
      `\`sluice check-config ${path}\` shows what is wrong with the file.`,
  );
}
