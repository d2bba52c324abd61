import { resolve } from "node:path";
import { createApp, type App } from "../../app.ts";
import type { Config } from "../../config/config.ts";
import { watchConfig, type ConfigWatch } from "../../config/watch.ts";
import type { Simulator } from "../../simulator/simulator.ts";
import { exitCodes } from "../../process/exit-codes.ts";
import {
  AskedToEnd,
  CommandError,
  readArguments,
  reasonOf,
  UsageError,
  type Command,
  type CommandIo,
} from "../command.ts";
import {
  loadSettings,
  readAddress,
  settingsOptions,
  type Settings,
  type SettingsArguments,
} from "./load-settings.ts";
import { commandLine } from "../program.ts";
import { restartWithFetchLimit } from "./restart-with-fetch-limit.ts";
import { startAnew } from "./start-anew.ts";
import { hasFetchLimit } from "../../process/supervisor/fetch-limit.ts";
import type { SupervisorLink } from "../../process/supervisor/supervisor-link.ts";

const options = {
  ...settingsOptions,
  data: { type: "string" },
  admin: { type: "string" },
  unsupervised: { type: "boolean" },
  init: { type: "boolean" },
  // For successors of the first worker, which must not replace data that was lost later.
  "no-init": { type: "boolean" },
} as const;

/** Slow enough to see that answers are streamed. */
const demoPace = { tokensPerSecond: 150, firstTokenDelayMs: 50 };

export const serveCommand: Command = {
  name: "serve",
  isService: true,
  summary: "run the gateway; without a configuration, a demo with a simulated provider",
  help: () => `Usage: sluice serve [--config FILE] [--data HOST:PORT] [--admin HOST:PORT] [--data-dir DIR]
                    [--unsupervised] [--init]

Without a configuration file a demo starts: every alias is served by a built-in simulator, and a
key to try it with is printed once.

The gateway runs in a worker process; this one starts it again when it ends unasked, and keeps a
report of that in DIR/crashes.

Options:
  -c, --config FILE   configuration (default: SLUICE_CONFIG, else the demo's)
  --data HOST:PORT    address of the API, instead of the configured one
  --admin HOST:PORT   address of the control plane, metrics and health, instead of the configured
  --data-dir DIR      where state is kept, instead of the configured directory
  --unsupervised      one process, which nobody starts again
  --init              begin anew where the database, or its pepper, is missing or another one; nothing
                      is removed. For one start: later ones refuse to run without what they had

SIGTERM: not ready from now on; serve for shutdown.pre_stop; then refuse new work, let open requests
finish (shutdown.drain_timeout), end. SIGINT: the same without shutdown.pre_stop. A second one ends
at once. SIGHUP: read the configuration again.

Exit code: 0 ended as asked, 1 could not start, 2 wrong usage.`,
  run: (args, io) => serve(args, io),
};

/** `known` are the settings that a standby read before it took over. */
export async function serve(
  args: readonly string[],
  io: CommandIo,
  known?: Settings,
): Promise<number> {
  const { values, positionals } = readArguments(args, options);
  if (positionals.length > 0) throw new UsageError(`serve does not take '${positionals[0]}'`);
  const initial = loadSettings(values, io, { known });
  const { path, config } = initial;
  if (io.supervisor === undefined) restartWithFetchLimit(config.upstreamRequests, io.environment);
  else if (!hasRightFetchLimit(io.supervisor, { config, path, io })) return exitCodes.ok;
  const reload = { now: (): void => undefined };
  // Registered first, because the signal ends a process without a handler. The demo has no file to
  // reload and ends with its terminal.
  if (path !== undefined) io.onReload(() => reload.now());
  await using simulator = path === undefined ? await simulateProvider() : undefined;
  // The demo's settings depend on the address of its simulator.
  const settings = simulator === undefined ? initial : loadSettings(values, io, { simulator });
  const wanted = withListeners(settings.config, values);
  const begins = values.init === true && values["no-init"] !== true;
  if (begins) await startAnew(wanted, io);
  await using app = await start(wanted, { values, io });
  const once = begins ? ["--no-init"] : [];
  io.tellStarted([...fixedAddresses(wanted, app), ...once]);
  if (simulator !== undefined) {
    const { introduceDemo } = await import("./introduce-demo.ts");
    await introduceDemo({ app, values }, io);
  }
  using watch = follow(app, settings, io);
  reload.now = () => watch?.reload();
  await untilAsked(io.signal);
  await app.drain({ isAnnounced: !isAskedByPerson(io.signal) });
  return exitCodes.ok;
}

/**
 * Prepares a standby: reads the configuration and loads the modules that serve it. The start reads
 * the file again, and checks it only if it has changed.
 */
export async function rehearseServe(
  args: readonly string[],
  io: CommandIo,
): Promise<Settings | undefined> {
  try {
    const settings = loadSettings(readArguments(args, options).values, io);
    if (settings.path === undefined) await import("../../simulator/simulator.ts");
    return settings;
  } catch {
    // The start reports the problem if it persists.
    return undefined;
  }
}

interface Beginning {
  readonly config: Config;
  readonly path: string | undefined;
  readonly io: CommandIo;
}

/** Sends the supervisor its settings; false when this process needs another limit of fetches. */
function hasRightFetchLimit(supervisor: SupervisorLink, { config, path, io }: Beginning): boolean {
  const { logLevel, logFormat } = config.telemetry;
  const {
    workers,
    upstreamRequests,
    supervisor: { hasStandby },
  } = config;
  const dataDir = resolve(config.dataDir);
  const isReloadable = path !== undefined;
  const log = { logLevel, logFormat };
  supervisor.tellSettings({ dataDir, ...log, workers, isReloadable, hasStandby });
  if (hasFetchLimit(upstreamRequests, io.environment)) return true;
  supervisor.askForFetchLimit(upstreamRequests);
  return false;
}

/** Loaded for a demo only, which shortens other starts. */
async function simulateProvider(): Promise<Simulator> {
  const { startSimulator } = await import("../../simulator/simulator.ts");
  return startSimulator(demoPace);
}

/** The addresses in use, so a successor serves at the same ports. */
function fixedAddresses({ listen: { data, admin } }: Config, app: App): readonly string[] {
  return [
    ...(data.port === 0 ? ["--data", new URL(app.dataUrl).host] : []),
    ...(admin.port === 0 ? ["--admin", new URL(app.adminUrl).host] : []),
  ];
}

function withListeners(config: Config, values: { data?: string; admin?: string }): Config {
  return {
    ...config,
    listen: {
      data: values.data === undefined ? config.listen.data : readAddress(values.data),
      admin: values.admin === undefined ? config.listen.admin : readAddress(values.admin),
    },
  };
}

interface ServeContext {
  readonly values: SettingsArguments;
  readonly io: CommandIo;
}

async function start(config: Config, context: ServeContext): Promise<App> {
  try {
    const onBootstrapToken = (token: BootstrapToken): void => printBootstrap(token, context);
    return await createApp(config, { log: context.io.log, onBootstrapToken });
  } catch (error) {
    throw new CommandError(`cannot start: ${reasonOf(error)}${adviceFor(error)}`);
  }
}

interface BootstrapToken {
  readonly text: string;
  readonly isConfigured: boolean;
}

/**
 * Prints a generated bootstrap token; one from the configuration stays out of terminals and logs.
 */
function printBootstrap(
  { text, isConfigured }: BootstrapToken,
  { values, io }: ServeContext,
): void {
  const token = isConfigured ? "the configured bootstrap token" : `the one-time token ${text}`;
  const create = "users create you@example.com --role operator --password-file -";
  io.report(`Nobody can sign in to the control plane yet. The first operator is made within an hour
with ${token} (POST /admin/v1/bootstrap),
or on this machine:

  ${commandLine(create, values)}
`);
}

function adviceFor(error: unknown): string {
  const isPort = error instanceof Error && error.message.startsWith("cannot listen");
  return isPort ? "\nOther addresses: --data HOST:PORT and --admin HOST:PORT, or `listen`." : "";
}

function follow(app: App, settings: Settings, io: CommandIo): ConfigWatch | undefined {
  const { path, text, fileConfig } = settings;
  if (path === undefined) return undefined;
  return watchConfig({
    path,
    text,
    env: io.environment.variables,
    current: fileConfig,
    now: () => io.clock.now(),
    onConfig: (next) => {
      app.reconfigure(next);
      app.events.configAccepted(path);
    },
    onProblems: (problems) => app.events.configRefused(problems),
    onNotice: (notice) => app.events.configNotice(notice),
  });
}

/** Whether a person at a terminal ends the process, which skips the wait for balancers. */
function isAskedByPerson({ reason }: AbortSignal): boolean {
  return reason instanceof AskedToEnd && reason.by === "SIGINT";
}

function untilAsked(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
