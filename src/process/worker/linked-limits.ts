import { limitStoreBounds } from "../wiring/build-services.ts";
import { RemoteLimits } from "./coordination/limits/remote-limits.ts";
import { SoloLimits, type SoloLimitsOptions } from "./coordination/limits/solo-limits.ts";
import type { DataServerOptions } from "./data-server-options.ts";

/**
 * Limits that this process shares with others, even if only with its successor; undefined: it
 * shares none.
 */
export function linkedLimits(
  { clock, overrides, coordination, handover }: DataServerOptions,
  restore: SoloLimitsOptions["restore"],
): RemoteLimits | SoloLimits | undefined {
  const { random = Math.random } = overrides;
  const options = { clock, random, ...limitStoreBounds };
  if (coordination !== undefined) return new RemoteLimits(coordination, options);
  return handover && new SoloLimits(handover, { ...options, restore });
}
