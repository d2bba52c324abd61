import { limitStoreBounds } from "../wiring/build-services.ts";
import {
  isShared,
  type SharedCoordinator,
  type SharedLimitStore,
} from "../wiring/limits/shared-limit-store.ts";
import { RemoteLimits } from "./coordination/limits/remote-limits.ts";
import { SoloLimits, type SoloLimitsOptions } from "./coordination/limits/solo-limits.ts";
import { SharedRouting } from "./coordination/shared-routing.ts";
import type { DataServerOptions } from "./data-server-options.ts";

export type LinkedLimits = RemoteLimits | SoloLimits | SharedLimitStore;

/**
 * Limits that this process shares with others, even if only with its successor; undefined: it
 * shares none.
 */
export function linkedLimits(
  { clock, telemetry, overrides, coordination, handover, newSharedLimits }: DataServerOptions,
  restore: SoloLimitsOptions["restore"],
): LinkedLimits | undefined {
  const { random = Math.random } = overrides;
  if (newSharedLimits !== undefined) {
    // Control asks each worker what it holds: nothing of what control decides.
    (coordination ?? handover)?.join({ report: () => ({}) });
    return newSharedLimits({ clock, random, telemetry });
  }
  telemetry.metrics.followLimits(() => false);
  const options = { clock, random, ...limitStoreBounds };
  if (coordination !== undefined) return new RemoteLimits(coordination, options);
  return handover && new SoloLimits(handover, { ...options, restore });
}

/** `restore`: fills limits that nobody else keeps. */
export async function startLimits(
  limits: LinkedLimits | undefined,
  restore: () => Promise<void>,
): Promise<void> {
  if (limits instanceof SoloLimits) await limits.ready;
  else if (isShared(limits)) await limits.start();
  else await restore();
}

export async function closeLimits(limits: LinkedLimits | undefined): Promise<void> {
  if (isShared(limits)) await limits.close();
}

/** What the process shares with other gateways besides limits; undefined: nothing. */
export function sharedCoordinator(limits: LinkedLimits | undefined): SharedCoordinator | undefined {
  return isShared(limits) ? limits.coordinator : undefined;
}

/** What the process shares about targets through control; undefined: nothing. */
export function linkedRouting(options: DataServerOptions): SharedRouting | undefined {
  const { coordination: link, clock, config, number = 1 } = options;
  return link && new SharedRouting({ link, clock, workers: config.processes, number });
}
