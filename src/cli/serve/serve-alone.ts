import { createApp, type App } from "../../app.ts";
import { printBootstrap, startError } from "./start-messages.ts";
import { exitCodes } from "../../process/exit-codes.ts";
import { untilAsked, type CommandIo } from "../command.ts";
import { beginGateway, type Begun } from "./begin-gateway.ts";
import { loadSettings, proxiesOf } from "./load-settings.ts";
import { isAskedByPerson, type ServeArguments } from "./serve-options.ts";

/** `serve --unsupervised`: the whole gateway in this process. */
export async function serveAlone(args: ServeArguments, io: CommandIo): Promise<number> {
  const initial = loadSettings(args, io);
  await using begun = await beginGateway(initial, args, io);
  await using app = await start(begun, args, io);
  io.tellStarted([]);
  if (begun.isDemo) {
    const { introduceDemo } = await import("./introduce-demo.ts");
    await introduceDemo({ app, values: args }, io);
  }
  using _ = begun.follow({ events: app.events, onConfig: (next) => app.reconfigure(next) });
  await untilAsked(io.signal);
  await app.drain({ isAnnounced: !isAskedByPerson(io.signal) });
  return exitCodes.ok;
}

async function start(
  { config, settings }: Begun,
  args: ServeArguments,
  io: CommandIo,
): Promise<App> {
  try {
    return await createApp(config, {
      log: io.log,
      version: io.version,
      proxies: proxiesOf(io.environment),
      configPath: settings.path,
      onBootstrapToken: (token) => printBootstrap(token, { values: args, config }, io),
    });
  } catch (error) {
    throw await startError(error, config, io);
  }
}
