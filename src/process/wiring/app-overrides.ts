import type { BootstrapOptions } from "../../control/sign-in/bootstrap/bootstrap.ts";
import type { RandomBytes } from "../../domain/keys/base62.ts";
import type { Clock } from "../../domain/clock.ts";
import type { HandlerParts } from "../../dialects/handler-parts.ts";
import type { Route } from "../../edge/dispatch/route.ts";
import type { PipelineServices } from "../../call/services.ts";
import type { LimitStore } from "../../store/store.ts";
import type { LogSink } from "../../telemetry/log/log-output.ts";

/** What tests and simulations put in the place of the real thing. */
export interface AppOverrides {
  readonly clock?: Clock;
  readonly random?: () => number;
  readonly randomBytes?: RandomBytes;
  readonly limits?: LimitStore;
  readonly resolveHost?: PipelineServices["resolveHost"];
  /** Endpoints of further dialects, on the data listener. */
  readonly surfaces?: (parts: HandlerParts) => readonly Route[];
  /** Where the log goes; nowhere without it. */
  readonly log?: LogSink;
  /** Told the token that makes the first operator, while there is none. It is never logged. */
  readonly onBootstrapToken?: BootstrapOptions["onBootstrapToken"];
}
