import type { RefusalLog } from "../../admission/refusals/refusal-log.ts";
import type { Config } from "../../config/config.ts";
import type { Clock } from "../../domain/clock.ts";
import type { RandomBytes } from "../../domain/keys/base62.ts";
import type { Peppers } from "../../domain/keys/peppers.ts";
import type { PortUse } from "../../edge/listen.ts";
import type { Shutdown } from "../../edge/shutdown.ts";
import type { SpoolWriter } from "../../ledger/spool/spool-writer.ts";
import type { Telemetry } from "../../telemetry/telemetry.ts";
import type { ControlPort } from "../control-port.ts";
import type { NewSharedLimits } from "../wiring/open-valkey-limits.ts";
import type { AppOverrides } from "../wiring/app-interface.ts";

export interface DataServerOptions {
  readonly config: Config;
  readonly control: ControlPort;
  readonly ledger: SpoolWriter;
  readonly telemetry: Telemetry;
  readonly shutdown: Shutdown;
  readonly refusals: RefusalLog;
  readonly peppers: Peppers;
  readonly clock: Clock;
  readonly randomBytes: RandomBytes;
  readonly overrides: AppOverrides;
  /** Set when the limits are shared with other processes. */
  readonly newSharedLimits?: NewSharedLimits | undefined;
  /** Number of this process, from 1. */
  readonly number?: number;
  /** Undefined when the control thread can serve. */
  readonly whyNotReady: () => string | undefined;
  readonly portUse?: PortUse | undefined;
}
