import { join, resolve } from "node:path";
import { ControlProcess } from "../../process/control/control-process.ts";
import { exitCodes } from "../../process/exit-codes.ts";
import type { SupervisorLink } from "../../process/supervisor/supervisor-link.ts";
import { CommandError, type CommandIo } from "../command.ts";
import { startDemoSimulator } from "./demo-simulator.ts";
import { followFile } from "./follow-file.ts";
import { loadSettings, type Settings } from "./load-settings.ts";
import {
  fixedAddress,
  isAskedByPerson,
  printBootstrap,
  startFailure,
  untilAsked,
  withListeners,
  type ServeArguments,
} from "./serve-options.ts";
import { startAnew } from "./start-anew.ts";

export interface ControlRole {
  readonly supervisor: SupervisorLink;
  /** Settings that a standby read before it took over. */
  readonly known: Settings | undefined;
}

/** The control process of a gateway. */
export async function serveControl(
  args: ServeArguments,
  { supervisor, known }: ControlRole,
  io: CommandIo,
): Promise<number> {
  const initial = loadSettings(args, io, { known });
  const { path } = initial;
  const socket = tellSettings(initial, supervisor);
  const reload = { now: (): void => undefined };
  // Registered first, because the signal ends a process without a handler.
  if (path !== undefined) io.onReload(() => reload.now());
  await using simulator = path === undefined ? await startDemoSimulator() : undefined;
  // The demo's settings depend on the address of its simulator.
  const settings = simulator === undefined ? initial : loadSettings(args, io, { simulator });
  const config = withListeners(settings.config, args);
  if (args.begins) await startAnew(config, io);
  await using control = await start({ settings, socket, args }, io);
  const { port } = config.listen.admin;
  const once = args.begins ? ["--no-init"] : [];
  io.tellStarted([...fixedAddress("admin", port, control.adminUrl), ...once]);
  const { adminUrl } = control;
  void control.serving.then(async (dataUrl) => {
    control.events.started({ data: dataUrl, admin: adminUrl });
    if (simulator === undefined || args.introduced === true) return;
    const { introduceDemo } = await import("./introduce-demo.ts");
    const app = { dataUrl, adminUrl, admin: control.admin };
    await introduceDemo({ app, values: args }, io);
    io.tellStarted(["--introduced"]);
  });
  using watch = followFile(settings, io, {
    events: control.events,
    onConfig: (next, text) => control.reconfigure(next, text),
  });
  reload.now = () => watch?.reload();
  await untilAsked(io.signal);
  await control.drain({ isAnnounced: !isAskedByPerson(io.signal) });
  return exitCodes.ok;
}

/** Returns the path of the socket for workers. */
function tellSettings({ config, path }: Settings, supervisor: SupervisorLink): string {
  const { logLevel, logFormat } = config.telemetry;
  const { workers, supervisor: own } = config;
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

interface ControlStart {
  readonly settings: Settings;
  readonly socket: string;
  readonly args: ServeArguments;
}

async function start(
  { settings, socket, args }: ControlStart,
  io: CommandIo,
): Promise<ControlProcess> {
  const { text, path } = settings;
  try {
    const control = new ControlProcess({
      config: withListeners(settings.config, args),
      feed: { text, path },
      socket,
      log: io.log,
      shownToken: args.shownToken,
      onBootstrapToken(token) {
        printBootstrap(token, args, io);
        io.tellStarted(["--shown-token", `${token.expiresAt}:${token.text}`]);
      },
    });
    try {
      await control.start();
    } catch (error) {
      await control[Symbol.asyncDispose]();
      throw error;
    }
    return control;
  } catch (error) {
    throw new CommandError(startFailure(error));
  }
}
