import type { Config } from "../../config/config.ts";
import type { Simulator } from "../../../simulator/simulator.ts";
import type { CommandIo } from "../command.ts";
import { followFile, type FollowOptions } from "./follow-file.ts";
import { loadSettings, type Settings } from "./load-settings.ts";
import { withListeners, type ServeArguments } from "./serve-options.ts";
import { startAnew } from "./start-anew.ts";

/** Slow enough to see that answers are streamed. */
const demoPace = { tokensPerSecond: 150, firstTokenDelayMs: 50 };

/** What the process that reads the configuration has before it opens anything. */
export interface Begun extends AsyncDisposable {
  readonly config: Config;
  readonly settings: Settings;
  readonly isDemo: boolean;
  /** Follows changes of the file, and the signal to read it again, until it is disposed of. */
  follow(options: FollowOptions): Disposable;
}

/**
 * Starts the demo's provider, and creates missing data if asked to. `initial`: the settings as
 * first read.
 */
export async function beginGateway(
  initial: Settings,
  args: ServeArguments,
  io: CommandIo,
): Promise<Begun> {
  const reload = { now: (): void => undefined };
  // Registered first, because the signal ends a process that has no handler. The demo has no file
  // to reload and ends with its terminal.
  if (initial.path !== undefined) io.onReload(() => reload.now());
  const simulator = initial.path === undefined ? await startDemoSimulator() : undefined;
  try {
    // The demo's settings depend on the address of its simulator.
    const settings = simulator === undefined ? initial : loadSettings(args, io, { simulator });
    const config = withListeners(settings.config, args);
    if (args.begins) await startAnew(config, io);
    return {
      config,
      settings,
      isDemo: simulator !== undefined,
      follow(options) {
        const watch = followFile(settings, io, options);
        reload.now = () => watch?.reload();
        return { [Symbol.dispose]: () => watch?.[Symbol.dispose]() };
      },
      [Symbol.asyncDispose]: () => stop(simulator),
    };
  } catch (error) {
    await stop(simulator);
    throw error;
  }
}

async function stop(simulator: Simulator | undefined): Promise<void> {
  await simulator?.[Symbol.asyncDispose]();
}

/**
 * Starts the provider of the demo. Its module is loaded only here, which makes other starts faster.
 */
async function startDemoSimulator(): Promise<Simulator> {
  const { startSimulator } = await import("../../../simulator/simulator.ts");
  return startSimulator(demoPace);
}
