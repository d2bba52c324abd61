import { resolve } from "node:path";
import type { Config, ListenAddress } from "../../config/config.ts";
import { parseConfig } from "../../config/load.ts";
import { keepRestartSettings } from "../../config/restart-settings.ts";
import type { IssuedToken } from "../../control/sign-in/bootstrap/bootstrap.ts";
import { FolderInUse } from "../../ledger/spool/folder-lock.ts";
import { exitCodes } from "../../process/program.ts";
import { StartProblem } from "../../process/thread-link.ts";
import { GatewayProcess } from "../../process/gateway-process.ts";
import type { Beginning } from "../../process/parent/child.ts";
import type { ParentLink } from "../../process/parent/parent-link.ts";
import { hasParent } from "../../process/parent/restart-socket.ts";
import { CommandError, untilAsked, type CommandIo } from "../command.ts";
import { loadSettings, proxiesOf, withDataDir, type Settings } from "./load-settings.ts";
import {
  fixedAddress,
  isAskedByPerson,
  readServeArguments,
  withListeners,
  type ServeArguments,
} from "./serve-options.ts";
import { startControlThread } from "./start-control-thread.ts";
import { explainStart, printBootstrap, StartError, startError } from "./start-messages.ts";

/** Runs a gateway process. Tells the parent why it does not start. */
export async function serve(
  beginning: Beginning,
  args: readonly string[],
  io: CommandIo & { readonly parent: ParentLink },
): Promise<number> {
  try {
    return await serveUntilAsked(beginning, args, io);
  } catch (error) {
    const reason = reasonToTell(error);
    if (reason !== undefined) io.parent.tellNotStarted(reason);
    throw error;
  }
}

/** Undefined for exceptions, whose message may quote a prompt. */
function reasonToTell(error: unknown): string | undefined {
  if (error instanceof StartError) return error.reason;
  return error instanceof CommandError ? error.message : undefined;
}

async function serveUntilAsked(
  beginning: Beginning,
  texts: readonly string[],
  io: CommandIo & { readonly parent: ParentLink },
): Promise<number> {
  const { portUse, crashedIn } = beginning;
  const args = readServeArguments(texts);
  const isFirst = portUse === "first";
  const reload = { now: (): void => undefined };
  const first = loadSettings(args, io, { lastGoodIn: crashedIn });
  // Registered early, because the signal ends a process that has no handler. The demo has no file to
  // reload and ends with its terminal.
  if (first.path !== undefined) io.onReload(() => reload.now());
  if (isFirst) await refuseSecond(first.config, io);
  const simulator = first.path === undefined ? await startDemoSimulator() : undefined;
  // The demo's settings depend on the address of its simulator.
  const settings = simulator === undefined ? first : loadSettings(args, io, { simulator });
  const config = withListeners(settings.config, args);
  tellSettings(settings, io.parent);
  /** Whether the demo has printed a link to sign in with. */
  const introduced = Promise.withResolvers<boolean>();
  /** For other processes, and another control thread of this one: the ports that the system chose. */
  const fixed: string[] = [];
  const given = new AbortController();
  const gateway = newGateway({
    settings,
    config,
    args,
    texts,
    fixed,
    beginning,
    io,
    onBootstrapToken: (token) =>
      void introduced.promise.then((canSignIn) => {
        if (!canSignIn) printBootstrap(token, { values: args, config }, io);
      }),
    onGivenUp: () => given.abort(),
  });
  await using _ = gateway;
  await start(gateway, config, io);
  reload.now = () => gateway.control.reload();
  let canSignIn = false;
  if (isFirst && simulator !== undefined) {
    const { introduceDemo } = await import("./introduce-demo.ts");
    canSignIn = await introduceDemo(gateway, args, io);
  }
  const { dataUrl, adminUrl } = gateway;
  fixed.push(
    ...fixedAddress("data", config.listen.data.port, dataUrl),
    ...(adminUrl === "" ? [] : fixedAddress("admin", config.listen.admin.port, adminUrl)),
  );
  io.tellStarted(fixed);
  // Compiled code and garbage of the start are of no more use.
  Bun.shrink();
  gateway.events.started({
    data: dataUrl,
    ...(adminUrl !== "" && { admin: adminUrl }),
    config: settings.path,
  });
  introduced.resolve(canSignIn);
  // Awaited here, before the gateway is disposed of.
  return await serveOn(gateway, given.signal, io);
}

async function serveOn(
  gateway: GatewayProcess,
  given: AbortSignal,
  io: CommandIo & { readonly parent: ParentLink },
): Promise<number> {
  const asked = Promise.race([untilAsked(io.signal), untilAsked(given)]);
  await Promise.race([asked, io.parent.replaced]);
  const isAsked = io.signal.aborted || given.aborted;
  if (!isAsked) await Promise.race([asked, gateway.leave()]);
  await gateway.drain({ isAnnounced: io.signal.aborted && !isAskedByPerson(io.signal) });
  return given.aborted ? exitCodes.failed : exitCodes.ok;
}

/** Nothing of the gateway runs yet: no other one may use the data directory. */
async function refuseSecond(config: Config, io: CommandIo): Promise<void> {
  if (!(await hasParent(resolve(config.dataDir)))) return;
  const inUse = new FolderInUse("another gateway uses the data directory");
  throw startError(explainStart(inUse, config.dataDir), config, io);
}

/** Addresses that no process of this gateway has. Those of the command line are of the first one. */
function newAddresses(
  { listen }: Config,
  args: ServeArguments,
  { portUse, ownPorts }: Beginning,
): readonly ListenAddress[] {
  if (portUse === "first") return [];
  return (["data", "admin"] as const)
    .filter((listener) => args[listener] === undefined)
    .map((listener) => listen[listener])
    .filter(({ port }) => !ownPorts.includes(port));
}

function tellSettings({ config, path }: Settings, parent: ParentLink): void {
  const { logLevel, logFormat } = config.telemetry;
  const { data, admin } = config.listen;
  parent.tellSettings({
    dataDir: resolve(config.dataDir),
    logLevel,
    logFormat,
    processes: config.processes,
    ports: [data.port, admin.port],
    isReloadable: path !== undefined,
  });
}

interface Served {
  readonly settings: Settings;
  readonly config: Config;
  readonly args: ServeArguments;
  readonly texts: readonly string[];
  /** Further arguments, known once it serves. */
  readonly fixed: readonly string[];
  readonly beginning: Beginning;
  readonly io: CommandIo;
  readonly onBootstrapToken: (token: IssuedToken) => void;
  readonly onGivenUp: () => void;
}

function newGateway({ settings, config, args, texts, fixed, beginning, io, ...on }: Served) {
  const { number, portUse } = beginning;
  const { path, text: firstText, startText = firstText } = settings;
  let text = firstText;
  let hasControl = false;
  return new GatewayProcess({
    config,
    number,
    portUse,
    newAddresses: newAddresses(config, args, beginning),
    overrides: { log: io.log, proxies: proxiesOf(io.environment) },
    startControl() {
      const isAgain = hasControl;
      hasControl = true;
      return startControlThread({
        config: { path, text, startText, loadedAt: io.clock.now() },
        args: [...texts, ...fixed],
        variables: io.environment.variables,
        number,
        portUse: isAgain ? "another" : portUse,
        parentPid: process.ppid,
      });
    },
    configOf(next, current) {
      text = next;
      const parsed = parseConfig(next, {
        name: path ?? "built-in demo",
        env: io.environment.variables,
      });
      if (!parsed.ok) return undefined;
      const served = withListeners(withDataDir(parsed.config, args, path), args);
      return keepRestartSettings(current, served).config;
    },
    ...on,
  });
}

async function start(gateway: GatewayProcess, config: Config, io: CommandIo): Promise<void> {
  try {
    await gateway.start();
  } catch (error) {
    // The control thread has explained its own.
    const isExplained = error instanceof StartProblem;
    const reason = isExplained ? error.message : explainStart(error, config.dataDir);
    throw startError(reason, config, io);
  }
}

interface DemoSimulator {
  readonly origin: string;
  readonly credential: { readonly accessKeyId: string; readonly secretAccessKey: string };
}

/** The provider of the demo, in a thread of its own that ends with the process. */
function startDemoSimulator(): Promise<DemoSimulator> {
  const thread = new Worker(new URL("./demo-simulator-thread.ts", import.meta.url).href, {
    smol: true,
  });
  thread.unref();
  const { promise, resolve: started, reject } = Promise.withResolvers<DemoSimulator>();
  thread.onmessage = ({ data }: MessageEvent<DemoSimulator>) => started(data);
  thread.onerror = ({ message }) => reject(new Error(message));
  return promise;
}
