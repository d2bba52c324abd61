import type { BootstrapOptions } from "../../control/sign-in/bootstrap/bootstrap.ts";
import type { Passwords } from "../../control/sign-in/guard/passwords.ts";
import type { RandomBytes } from "../../domain/keys/base62.ts";
import type { Clock } from "../../domain/clock.ts";
import type { CallServices } from "../../call/services.ts";
import type { Proxies } from "../../domain/upstream-settings.ts";
import type { CallHook } from "../../snapshot/call-hooks.ts";
import type { LimitStore } from "../../store/limits/limit-store.ts";
import type { HandlerParts } from "../../dialects/read-call.ts";
import type { Route } from "../../edge/dispatch/route.ts";
import type { LogSink } from "../../telemetry/log/log-output.ts";
import type { AdminServices } from "../../control/services.ts";
import type { Config } from "../../config/config.ts";
import type { TelemetryEvents } from "../../telemetry/events/events.ts";

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

/** Replacements for tests and simulations, and additions of the command line. */
export interface AppOverrides {
  /** Path of the configuration, for the log. */
  readonly configPath?: string | undefined;
  readonly clock?: Clock;
  readonly random?: () => number;
  readonly randomBytes?: RandomBytes;
  readonly limits?: LimitStore;
  /** Endpoints of further dialects, on the data listener. */
  readonly surfaces?: (parts: HandlerParts) => readonly Route[];
  readonly passwords?: Passwords;
  readonly resolveHost?: CallServices["resolveHost"];
  /** Run after those of the configuration. */
  readonly hooks?: readonly CallHook[];
  /** Forward proxies on the way to upstreams; none without it. */
  readonly proxies?: Proxies;
  /** Destination of the log; discarded without it. */
  readonly log?: LogSink;
  /**
   * Called with the token for creating the first operator, while there is no operator. The token is
   * never logged.
   */
  readonly onBootstrapToken?: BootstrapOptions["onBootstrapToken"];
}
