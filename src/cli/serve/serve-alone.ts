import { createApp, type App } from "../../app.ts";
import type { IssuedToken } from "../../control/sign-in/bootstrap/bootstrap.ts";
import { printBootstrap, startError } from "./start-messages.ts";
import { exitCodes } from "../../process/exit-codes.ts";
import { untilAsked, type CommandIo } from "../command.ts";
import { beginGateway, type Begun } from "./begin-gateway.ts";
import { checkAddresses } from "./check-addresses.ts";
import { loadSettings, proxiesOf } from "./load-settings.ts";
import { isAskedByPerson, type ServeArguments } from "./serve-options.ts";

/** `serve --unsupervised`: the whole gateway in this process. */
export async function serveAlone(args: ServeArguments, io: CommandIo): Promise<number> {
  const initial = loadSettings(args, io);
  await checkAddresses(initial, args, io);
  await using begun = await beginGateway(initial, args, io);
  const introduced = Promise.withResolvers<void>();
  const onBootstrapToken = (token: IssuedToken): void =>
    void introduced.promise.then(() =>
      printBootstrap(token, { values: args, config: begun.config }, io),
    );
  await using app = await start(begun, onBootstrapToken, io);
  io.tellStarted([]);
  if (begun.isDemo) {
    const { introduceDemo } = await import("./introduce-demo.ts");
    await introduceDemo({ app, values: args }, io);
  }
  introduced.resolve();
  using _ = begun.follow({ events: app.events, onConfig: (next) => app.reconfigure(next) });
  await untilAsked(io.signal);
  await app.drain({ isAnnounced: !isAskedByPerson(io.signal) });
  return exitCodes.ok;
}

async function start(
  { config, settings }: Begun,
  onBootstrapToken: (token: IssuedToken) => void,
  io: CommandIo,
): Promise<App> {
  try {
    return await createApp(config, {
      log: io.log,
      version: io.version,
      proxies: proxiesOf(io.environment),
      configPath: settings.path,
      onBootstrapToken,
    });
  } catch (error) {
    throw await startError(error, config, io);
  }
}
