import type { Clock } from "../../../domain/clock.ts";
import type { LimitStore } from "../../../store/limits/limit-store.ts";
import type { Telemetry } from "../../../telemetry/telemetry.ts";
import type { RoutingSharing } from "../build-routing.ts";

/** The limits of a process that shares them with others. */
export interface SharedLimitStore extends LimitStore {
  /** What the processes share about targets. */
  readonly sharing: RoutingSharing;
  /** Whether this process grants its share, because the server does not answer or has lost data. */
  isAlone(): boolean;
  /** Connects; the process serves calls even if that fails. */
  start(): Promise<void>;
  close(): Promise<void>;
}

export interface SharedLimitParts {
  readonly clock: Clock;
  readonly random: () => number;
  readonly telemetry: Telemetry;
}

export type NewSharedLimits = (parts: SharedLimitParts) => SharedLimitStore;
