import type { Clock } from "../../domain/clock.ts";
import { randomBase62, type RandomBytes } from "../../domain/keys/base62.ts";
import type { TelemetryEvents } from "../../telemetry/events/events.ts";
import type { AdapterServices } from "../../upstreams/adapter.ts";

export interface AdapterSources {
  readonly clock: Clock;
  readonly randomBytes: RandomBytes;
  readonly telemetry: { readonly events: Pick<TelemetryEvents, "upstreamTrouble"> };
}

/** What the adapter of the upstream with this name needs from outside. */
export function adapterServices({ clock, randomBytes, telemetry }: AdapterSources) {
  return (upstream: string): AdapterServices => ({
    clock,
    newToolCallId: () => `call_${randomBase62(24, randomBytes)}`,
    onTrouble: (what) => telemetry.events.upstreamTrouble(upstream, what),
  });
}
