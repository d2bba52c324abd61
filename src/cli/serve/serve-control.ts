import { availableParallelism } from "node:os";
import { join, resolve } from "node:path";
import { printBootstrap, startError } from "./start-messages.ts";
import type { IssuedToken } from "../../control/sign-in/bootstrap/bootstrap.ts";
import type { Config } from "../../config/config.ts";
import { checkStart } from "../../process/control/check-start.ts";
import { ControlProcess } from "../../process/control/control-process.ts";
import { buildDoor, type Door } from "../../process/wiring/door.ts";
import { exitCodes } from "../../process/exit-codes.ts";
import type { Beginning } from "../../process/supervisor/messages.ts";
import type { SupervisorLink } from "../../process/supervisor/supervisor-link.ts";
import { untilAsked, type CommandIo } from "../command.ts";
import { beginGateway } from "./begin-gateway.ts";
import { checkAddresses } from "./check-addresses.ts";
import { loadSettings, type Settings } from "./load-settings.ts";
import {
  fixedAddress,
  isAskedByPerson,
  withListeners,
  type ServeArguments,
} from "./serve-options.ts";

const allCores =
  "`processes: auto` serves calls on every core; it needs a server in limits.store, such as a " +
  "Valkey on this machine (valkey://127.0.0.1:6379)";

export interface ControlRole {
  readonly supervisor: SupervisorLink;
  /** Settings that were read while this process was a standby. */
  readonly known: Settings | undefined;
  readonly portUse: Beginning["portUse"];
}

/** The control process of a gateway. */
export async function serveControl(
  args: ServeArguments,
  { supervisor, known, portUse }: ControlRole,
  io: CommandIo,
): Promise<number> {
  const initial = loadSettings(args, io, { known });
  if (portUse === "successor") await checkBeforehand(initial.config, io);
  if (portUse === "first") await checkAddresses(initial, args, io);
  const socket = tellSettings(initial, supervisor);
  await using begun = await beginGateway(initial, args, io);
  const { config, settings, isDemo } = begun;
  const asked = untilAsked(io.signal);
  await using door = portUse === "successor" ? await openDoor(config, io) : undefined;
  if (door !== undefined) {
    supervisor.tellWaiting();
    await Promise.race([asked, supervisor.mayTakeOver]);
    if (io.signal.aborted) return exitCodes.ok;
  }
  const introduced = Promise.withResolvers<void>();
  const onBootstrapToken = (token: IssuedToken): void =>
    void introduced.promise.then(() => {
      printBootstrap(token, { values: args, config: settings.config }, io);
      io.tellStarted(["--shown-token", `${token.expiresAt}:${token.text}`]);
    });
  const plan = { settings, socket, args, portUse, door, onBootstrapToken };
  await using control = await start(plan, io);
  const { port } = config.listen.admin;
  const once = args.begins ? ["--no-init"] : [];
  io.tellStarted([...fixedAddress("admin", port, control.adminUrl), ...once]);
  const { adminUrl } = control;
  void control.serving.then(async (dataUrl) => {
    if (isDemo && args.introduced !== true) {
      const { introduceDemo } = await import("./introduce-demo.ts");
      const app = { dataUrl, adminUrl, admin: control.admin };
      await introduceDemo({ app, values: args }, io);
      io.tellStarted(["--introduced"]);
    }
    control.events.started({ data: dataUrl, admin: adminUrl, config: settings.path });
    const cores = availableParallelism();
    if (config.processes === 1 && cores > 1) control.events.coresUnused({ cores, hint: allCores });
    introduced.resolve();
  });
  using _ = begun.follow({
    events: control.events,
    onConfig: (next, text) => control.reconfigure(next, text),
  });
  await Promise.race([asked, supervisor.replaced]);
  if (io.signal.aborted) await control.drain({ isAnnounced: !isAskedByPerson(io.signal) });
  else await control.leave();
  return exitCodes.ok;
}

/** While the process before still serves: it continues if this one cannot start. */
async function checkBeforehand(config: Config, io: CommandIo): Promise<void> {
  try {
    await checkStart(config, io);
  } catch (error) {
    throw await startError(error, config, io);
  }
}

/** Returns the path of the socket for workers. */
function tellSettings({ config, path }: Settings, supervisor: SupervisorLink): string {
  const { logLevel, logFormat } = config.telemetry;
  const { processes: workers, supervisor: own } = config;
  const dataDir = resolve(config.dataDir);
  const socket = join(dataDir, "control.sock");
  supervisor.tellSettings({
    dataDir,
    socket,
    logLevel,
    logFormat,
    workers,
    isReloadable: path !== undefined,
    hasStandby: own.hasStandby,
  });
  return socket;
}

/** Listens on the admin address while the previous process still has the data directory. */
async function openDoor(config: Config, io: CommandIo): Promise<Door> {
  const { listen, http } = config;
  try {
    return buildDoor({ address: listen.admin, idleTimeoutMs: http.idleTimeoutMs });
  } catch (error) {
    throw await startError(error, config, io);
  }
}

interface ControlStart {
  readonly settings: Settings;
  readonly socket: string;
  readonly args: ServeArguments;
  readonly portUse: Beginning["portUse"];
  readonly door: Door | undefined;
  readonly onBootstrapToken: (token: IssuedToken) => void;
}

async function start(
  { settings, socket, args, portUse, door, onBootstrapToken }: ControlStart,
  io: CommandIo,
): Promise<ControlProcess> {
  const { text, path } = settings;
  try {
    const control = new ControlProcess({
      config: withListeners(settings.config, args),
      feed: { text, path },
      socket,
      log: io.log,
      overrides: { version: io.version },
      portUse,
      door,
      shownToken: args.shownToken,
      onBootstrapToken,
    });
    try {
      await control.start();
    } catch (error) {
      await control[Symbol.asyncDispose]();
      throw error;
    }
    return control;
  } catch (error) {
    throw await startError(error, settings.config, io);
  }
}
