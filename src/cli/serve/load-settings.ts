import { join, resolve } from "node:path";
import { readLastGood } from "../../process/last-good.ts";
import type { Config } from "../../config/config.ts";
import { demoConfigText, demoDataDir } from "../../config/demo.ts";
import { formatProblems, parseConfig } from "../../config/load.ts";
import { ProxyProblem, readProxies } from "../../config/proxies.ts";
import { keepRestartSettings } from "../../config/restart-settings.ts";
import type { Proxies } from "../../domain/upstream-settings.ts";
import { listenAddress, type ListenAddress } from "../../settings/values.ts";
import { CommandError, UsageError, type CommandIo } from "../command.ts";
import { readConfigFile } from "../read-input.ts";
import type { Simulator } from "../../../simulator/simulator.ts";

export interface SettingsArguments {
  readonly config?: string | undefined;
  readonly "data-dir"?: string | undefined;
}

export interface Settings {
  readonly config: Config;
  /** The configuration of the file, without the options of the command line. */
  readonly fileConfig: Config;
  readonly path: string | undefined;
  readonly text: string;
  /** As in `ConfigText`. */
  readonly startText?: string | undefined;
}

/** Where the demo's provider is and what it accepts, until it runs. */
const noSimulator: DemoProvider = {
  origin: "http://127.0.0.1:1",
  credential: { accessKeyId: "demo", secretAccessKey: "demo" },
};

type DemoProvider = Pick<Simulator, "origin" | "credential">;

export interface SettingsSources {
  readonly simulator?: DemoProvider;
  /**
   * The data directory of a process that crashed. The configuration that worked last is there: its
   * settings stay that only a restart changes, and all of it is used if the file is broken now.
   */
  readonly lastGoodIn?: string | undefined;
}

/** Loads the configuration: the named file, else that of the environment, else the demo. */
export function loadSettings(
  chosen: SettingsArguments,
  io: CommandIo,
  { simulator = noSimulator, lastGoodIn }: SettingsSources = {},
): Settings {
  proxiesOf(io.environment);
  const path = chosen.config ?? io.environment.configPath;
  const { variables } = io.environment;
  const text = path === undefined ? demoText(chosen, simulator) : readConfigFile(path);
  const hasCrashed = path !== undefined && lastGoodIn !== undefined;
  const startText = hasCrashed ? readLastGood(lastGoodIn) : undefined;
  try {
    return { ...parseServed({ path, text, startText }, chosen, variables), path, text, startText };
  } catch (error) {
    if (startText === undefined) throw error;
    const served = parseServed({ path, text: startText }, chosen, variables);
    return { ...served, path, text: startText };
  }
}

/** Parses a configuration with the data directory of the command line. Throws `CommandError`. */
export function parseServed(
  { path, text, startText = text }: Pick<Settings, "path" | "text" | "startText">,
  chosen: SettingsArguments,
  env: CommandIo["environment"]["variables"],
): Pick<Settings, "config" | "fileConfig"> {
  const name = path ?? "built-in demo";
  const result = parseConfig(text, { name, env });
  if (!result.ok) throw new CommandError(formatProblems(name, result.problems));
  const started = startText === text ? result : parseConfig(startText, { name, env });
  const fileConfig = started.ok
    ? keepRestartSettings(started.config, result.config).config
    : result.config;
  return { config: withDataDir(fileConfig, chosen, path), fileConfig };
}

/** Throws `CommandError`. */
export function proxiesOf({ variables }: CommandIo["environment"]): Proxies {
  try {
    return readProxies(variables);
  } catch (error) {
    throw error instanceof ProxyProblem ? new CommandError(error.message) : error;
  }
}

export function readAddress(text: string): ListenAddress {
  const result = listenAddress("", text).safeParse(text);
  if (result.success) return result.data;
  throw new UsageError(`'${text}' is not an address; use HOST:PORT, such as 127.0.0.1:8080`);
}

function demoText(chosen: SettingsArguments, { origin, credential }: DemoProvider): string {
  return demoConfigText({
    simulator: { endpoint: origin, region: "us-east-1", ...credential },
    dataDir: chosen["data-dir"] ?? demoDataDir,
    listenData: "127.0.0.1:8080",
    listenAdmin: "127.0.0.1:8081",
  });
}

export function withDataDir(
  config: Config,
  chosen: SettingsArguments,
  path: string | undefined,
): Config {
  const named = chosen["data-dir"];
  if (named === undefined || path === undefined) return config;
  const dataDir = resolve(named);
  // The database moves with the data directory unless the file sets its path.
  const isInside = config.storage.path === join(config.dataDir, "sluice.db");
  const storage =
    isInside && config.storage.backend === "sqlite"
      ? { ...config.storage, path: join(dataDir, "sluice.db") }
      : config.storage;
  return { ...config, dataDir, storage };
}
