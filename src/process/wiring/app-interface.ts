import type { BootstrapOptions } from "../../control/sign-in/bootstrap/bootstrap.ts";
import type { RandomBytes } from "../../domain/keys/base62.ts";
import type { Clock } from "../../domain/clock.ts";
import type { PipelineServices } from "../../call/services.ts";
import type { CallHook } from "../../snapshot/call-hooks.ts";
import type { LimitStore } from "../../store/store.ts";
import type { LogSink } from "../../telemetry/log/log-output.ts";
import type { AdminServices } from "../../control/services.ts";
import type { Config } from "../../config/config.ts";
import type { TelemetryEvents } from "../../telemetry/events/events.ts";

/** A gateway that serves. */
export interface App extends AsyncDisposable {
  readonly dataUrl: string;
  readonly adminUrl: string;
  readonly events: TelemetryEvents;
  /** What the control plane works with; also for whoever runs the app. */
  readonly admin: AdminServices;
  /** Swaps in a configuration that was validated. Listeners and storage stay as they are. */
  reconfigure(config: Config): void;
  /** Brings what the ledger still holds to the database. */
  flushUsage(): Promise<void>;
  /**
   * Says that it ends and serves on for `shutdown.pre_stop`, unless told not to; then refuses new
   * work, waits for open requests at most the drain time, and ends their calls.
   */
  drain(options?: { readonly isAnnounced?: boolean }): Promise<void>;
}

/** What tests and simulations put in the place of the real thing. */
export interface AppOverrides {
  readonly clock?: Clock;
  readonly random?: () => number;
  readonly randomBytes?: RandomBytes;
  readonly limits?: LimitStore;
  readonly resolveHost?: PipelineServices["resolveHost"];
  /** Run behind those of the configuration. */
  readonly hooks?: readonly CallHook[];
  /** Where the log goes; nowhere without it. */
  readonly log?: LogSink;
  /** Told the token that makes the first operator, while there is none. It is never logged. */
  readonly onBootstrapToken?: BootstrapOptions["onBootstrapToken"];
}
