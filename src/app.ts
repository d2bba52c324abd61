import type { Config } from "./config/config.ts";
import { issueDemoKey } from "./cli/serve/introduce-demo.ts";
import type { RunningControl } from "./process/control-client.ts";
import { ControlSide } from "./process/control/control-side.ts";
import { GatewayProcess } from "./process/gateway-process.ts";
import type { ToControl, ToMain } from "./process/messages.ts";
import { portsInThread, ThreadLink } from "./process/thread-link.ts";
import type { App, AppOverrides } from "./process/wiring/app-interface.ts";
import { systemClock } from "./domain/clock.ts";
import { noLog } from "./telemetry/log/log-output.ts";

export type { App, AppOverrides } from "./process/wiring/app-interface.ts";

/**
 * Builds a gateway process whose control side is in this thread, over the same messages: clocks and hooks of
 * tests cannot be copied to another one. Throws when a step of the start fails.
 */
export async function createApp(
  config: Config,
  overrides: AppOverrides = {},
  number = 1,
): Promise<App> {
  let thrown: unknown;
  const sides: ControlSide[] = [];
  const process = new GatewayProcess({
    config,
    number,
    portUse: "alone",
    overrides,
    startControl() {
      const { running, side } = startControlSide(config, { ...overrides, number }, (error) => {
        thrown = error;
      });
      sides.push(side);
      return running;
    },
    configOf: () => undefined,
    onBootstrapToken: overrides.onBootstrapToken,
    onGivenUp: () => undefined,
  });
  const side = (): ControlSide => {
    const last = sides.at(-1);
    if (last === undefined) throw new Error("the control side was not started");
    return last;
  };
  try {
    await process.start();
  } catch (error) {
    await process[Symbol.asyncDispose]();
    throw thrown ?? error;
  }
  process.events.started({
    data: process.dataUrl,
    admin: process.adminUrl,
    config: overrides.configPath,
  });
  return {
    get dataUrl() {
      return process.dataUrl;
    },
    get adminUrl() {
      return process.adminUrl;
    },
    events: process.events,
    get admin() {
      return side().admin;
    },
    reconfigure(next) {
      side().reconfigure(next);
      process.reconfigure(next);
    },
    flushUsage: () => process.flushUsage(),
    drain: (options) => process.drain(options),
    [Symbol.asyncDispose]: () => process[Symbol.asyncDispose](),
  };
}

interface SideOverrides extends AppOverrides {
  readonly number: number;
}

function startControlSide(
  config: Config,
  { clock = systemClock, log = noLog, passwords, randomBytes, number }: SideOverrides,
  onStartFailed: (error: unknown) => void,
): { readonly running: RunningControl; readonly side: ControlSide } {
  const [port, other] = portsInThread();
  const side: ControlSide = new ControlSide({
    config,
    text: undefined,
    link: new ThreadLink<ToMain, ToControl>(other, clock),
    log,
    clock,
    randomBytes: randomBytes ?? ((target) => crypto.getRandomValues(target)),
    number,
    portUse: "alone",
    pid: globalThis.process.pid,
    passwords,
    async explain(error) {
      onStartFailed(error);
      return error instanceof Error ? error.message : String(error);
    },
    reload: () => undefined,
    issueDemoKey,
  });
  const running = { port, ended: new Promise<string>(() => undefined), terminate: () => undefined };
  return { running, side };
}
