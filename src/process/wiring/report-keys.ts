import type { Config } from "../../config/config.ts";
import type { KeyRing } from "../../keys/key-ring.ts";
import { findStrandedKeys, oversoldPools } from "../../keys/stranded-keys.ts";
import type { TelemetryEvents } from "../../telemetry/events/events.ts";

/** Logs live keys that the configuration does not serve, at the start and after each reload. */
export function reportKeys(config: Config, keyRing: KeyRing, events: TelemetryEvents): void {
  const { plans, environments } = config;
  const configured = { plans, names: new Set(environments.map(({ name }) => name)) };
  for (const stranded of findStrandedKeys(keyRing.secrets.values(), configured)) {
    events.keysStranded(stranded.what, stranded.name, stranded.keys);
  }
  for (const oversold of oversoldPools(config.pools, keyRing.unitsByPool)) {
    events.poolOversold(oversold);
  }
}
