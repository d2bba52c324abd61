import type { UpstreamSettings } from "../../config/config.ts";
import type { Clock } from "../../domain/clock.ts";
import { randomBase62, type RandomBytes } from "../../domain/keys/base62.ts";
import type { TelemetryEvents } from "../../telemetry/events/events.ts";
import type { UpstreamAdapter } from "../../upstreams/adapter.ts";
import { kindNamed, type UpstreamKind } from "../../upstreams/kind.ts";
import { upstreamKinds } from "../../upstreams/kinds.ts";

export type CreateAdapter = (upstream: UpstreamSettings) => UpstreamAdapter;

export interface AdapterParts {
  readonly clock: Clock;
  readonly randomBytes: RandomBytes;
  readonly events: Pick<TelemetryEvents, "upstreamTrouble">;
  /** Those that the configuration was read with. */
  readonly kinds: readonly UpstreamKind[] | undefined;
}

/** Makes the adapters of upstreams, each by its kind. */
export function adapterFactory(parts: AdapterParts): CreateAdapter {
  const { clock, randomBytes, events, kinds = upstreamKinds } = parts;
  return ({ name, kind, settings }) =>
    kindNamed(kinds, kind).createAdapter(settings, {
      clock,
      newToolCallId: () => `call_${randomBase62(24, randomBytes)}`,
      onTrouble: (what) => events.upstreamTrouble(name, what),
    });
}
