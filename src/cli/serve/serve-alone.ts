import { createApp, type App } from "../../app.ts";
import type { Config } from "../../config/config.ts";
import { exitCodes } from "../../process/exit-codes.ts";
import { CommandError, type CommandIo } from "../command.ts";
import { startDemoSimulator } from "./demo-simulator.ts";
import { followFile } from "./follow-file.ts";
import { loadSettings } from "./load-settings.ts";
import { restartWithFetchLimit } from "./restart-with-fetch-limit.ts";
import {
  isAskedByPerson,
  printBootstrap,
  startFailure,
  untilAsked,
  withListeners,
  type ServeArguments,
} from "./serve-options.ts";
import { startAnew } from "./start-anew.ts";

/** `serve --unsupervised`: the whole gateway in this process. */
export async function serveAlone(args: ServeArguments, io: CommandIo): Promise<number> {
  const initial = loadSettings(args, io);
  const { path } = initial;
  restartWithFetchLimit(initial.config.upstreamRequests, io.environment);
  const reload = { now: (): void => undefined };
  // Registered first, because the signal ends a process without a handler. The demo has no file to
  // reload and ends with its terminal.
  if (path !== undefined) io.onReload(() => reload.now());
  await using simulator = path === undefined ? await startDemoSimulator() : undefined;
  // The demo's settings depend on the address of its simulator.
  const settings = simulator === undefined ? initial : loadSettings(args, io, { simulator });
  const config = withListeners(settings.config, args);
  if (args.begins) await startAnew(config, io);
  await using app = await start(config, args, io);
  io.tellStarted([]);
  if (simulator !== undefined) {
    const { introduceDemo } = await import("./introduce-demo.ts");
    await introduceDemo({ app, values: args }, io);
  }
  using watch = followFile(settings, io, {
    events: app.events,
    onConfig: (next) => app.reconfigure(next),
  });
  reload.now = () => watch?.reload();
  await untilAsked(io.signal);
  await app.drain({ isAnnounced: !isAskedByPerson(io.signal) });
  return exitCodes.ok;
}

async function start(config: Config, args: ServeArguments, io: CommandIo): Promise<App> {
  try {
    return await createApp(config, {
      log: io.log,
      onBootstrapToken: (token) => printBootstrap(token, args, io),
    });
  } catch (error) {
    throw new CommandError(startFailure(error));
  }
}
