import type { Capacity } from "../../../../admission/capacity/capacity.ts";
import type { Clock } from "../../../../domain/clock.ts";
import type { RoutingSettings } from "../../../../domain/settings.ts";
import type { ValkeyConnection } from "../../../../store/coordinator/valkey/connection/valkey-connection.ts";
import type { Fleet } from "../../../../store/coordinator/valkey/fleet/fleet.ts";
import { ValkeyAllotments } from "../../../../store/coordinator/valkey/places/valkey-allotments.ts";
import type { RoutingSharing } from "../../../wiring/build-routing.ts";
import { PlaceAllotments } from "./place-allotments.ts";

export interface ValkeyRoutingOptions {
  readonly connection: ValkeyConnection;
  readonly clock: Clock;
  readonly fleet: Fleet;
}

/** What the workers of several gateways share about targets. */
export class ValkeyRouting implements RoutingSharing {
  readonly places: Required<NonNullable<RoutingSharing["places"]>>;
  readonly #allotments: PlaceAllotments;

  constructor({ connection, clock, fleet }: ValkeyRoutingOptions) {
    const store = new ValkeyAllotments({ connection, fleet });
    const allotments = (this.#allotments = new PlaceAllotments({ clock, store }));
    this.places = { parts: allotments, recall: (refused) => allotments.recall(refused) };
  }

  attach(own: Capacity): void {
    this.#allotments.attach(own);
  }

  /** Shares of ordinary attempts add up by themselves; the floor is divided. */
  shareOf(settings: RoutingSettings): RoutingSettings {
    return { ...settings, retryFloor: this.#allotments.shareOf(settings.retryFloor) };
  }

  /** Gives back everything that no call uses. */
  async close(): Promise<void> {
    await this.#allotments.close();
  }
}
