import type { Config } from "../../src/config/config.ts";
import { issueDemoAccess } from "../../src/cli/serve/introduce-demo.ts";
import { settingsInUse } from "../../src/config/effective-settings.ts";
import type { RunningControl } from "../../src/process/control-client.ts";
import { ControlPlane } from "../../src/process/control/control-plane.ts";
import type { ProcessOverrides } from "../../src/process/call-server.ts";
import { GatewayProcess } from "../../src/process/gateway-process.ts";
import type { BootstrapOptions } from "../../src/control/sign-in/bootstrap/bootstrap.ts";
import type { Passwords } from "../../src/control/sign-in/guard/passwords.ts";
import type { ToControl, ToMain } from "../../src/process/messages.ts";
import { ThreadLink } from "../../src/process/thread-link.ts";
import { portsInThread } from "./thread-ports.ts";
import type { AdminServices } from "../../src/control/services.ts";
import type { TelemetryEvents } from "../../src/telemetry/events/events.ts";
import { systemClock } from "../../src/domain/clock.ts";
import { noLog } from "../../src/telemetry/log/log-output.ts";

export interface AppOverrides extends ProcessOverrides {
  /** Path of the configuration, for the log. */
  readonly configPath?: string | undefined;
  readonly passwords?: Passwords;
  /**
   * Called with the token for creating the first operator, while there is no operator. The token is
   * never logged.
   */
  readonly onBootstrapToken?: BootstrapOptions["onBootstrapToken"];
}

/** A running gateway. */
export interface App extends AsyncDisposable {
  readonly dataUrl: string;
  readonly adminUrl: string;
  readonly events: TelemetryEvents;
  /** Services of the control plane. */
  readonly admin: AdminServices;
  /** Applies a validated configuration. Listeners and storage are not changed. */
  reconfigure(config: Config): void;
  /** Stores all usage of the ledger in the database. */
  flushUsage(): Promise<void>;
  /**
   * Announces the shutdown and keeps serving for `shutdown.pre_stop`, unless told not to; then
   * refuses new work, waits for open requests up to the drain time, and ends the remaining calls.
   */
  drain(options?: { readonly isAnnounced?: boolean }): Promise<void>;
}

/**
 * Builds a gateway process whose control plane is in this thread, over the same messages: clocks and hooks of
 * tests cannot be copied to another one. Throws when a step of the start fails.
 */
export async function createApp(
  config: Config,
  overrides: AppOverrides = {},
  number = 1,
): Promise<App> {
  let thrown: unknown;
  const sides: ControlPlane[] = [];
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
  const side = (): ControlPlane => {
    const last = sides.at(-1);
    if (last === undefined) throw new Error("the control plane was not started");
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
): { readonly running: RunningControl; readonly side: ControlPlane } {
  const [port, other] = portsInThread();
  const side: ControlPlane = new ControlPlane({
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
    explain(error) {
      onStartFailed(error);
      return error instanceof Error ? error.message : String(error);
    },
    reload: () => undefined,
    settingsOf: (text, first) => settingsInUse(text, first, { env: {}, given: {} }),
    issueDemoAccess,
  });
  const running = { port, ended: new Promise<string>(() => undefined), terminate: () => undefined };
  return { running, side };
}
