import type { Capacity } from "../../../../admission/capacity/capacity.ts";
import type { Clock } from "../../../../domain/clock.ts";
import type { RoutingSettings } from "../../../../domain/settings.ts";
import { ConcurrencyLimit } from "../../../../routing/health/concurrency-limit.ts";
import type { HealthHint } from "../../../../routing/health/target-health.ts";
import type { ValkeyConnection } from "../../../../store/coordinator/valkey/connection/valkey-connection.ts";
import type { Fleet } from "../../../../store/coordinator/valkey/fleet/fleet.ts";
import { ValkeyAllotments } from "../../../../store/coordinator/valkey/places/valkey-allotments.ts";
import type { RoutingSharing } from "../../../wiring/build-routing.ts";
import { HealthChannel } from "./health-channel.ts";
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
  readonly #health: HealthChannel;

  constructor({ connection, clock, fleet }: ValkeyRoutingOptions) {
    const store = new ValkeyAllotments({ connection, fleet });
    const allotments = (this.#allotments = new PlaceAllotments({ clock, store }));
    this.#health = new HealthChannel({ connection, process: fleet.worker });
    this.places = { parts: allotments, recall: (refused) => allotments.recall(refused) };
  }

  capacity(own: Capacity): Capacity {
    this.#allotments.attach(own);
    return own;
  }

  /** Each worker learns how many attempts a target takes from it: all learn from the same target. */
  newLimit(): ConcurrencyLimit {
    return new ConcurrencyLimit();
  }

  budgets(own: Parameters<RoutingSharing["budgets"]>[0]): ReturnType<RoutingSharing["budgets"]> {
    return own;
  }

  /** Shares of ordinary attempts add up by themselves; the floor is divided. */
  shareOf(settings: RoutingSettings): RoutingSettings {
    return { ...settings, retryFloor: this.#allotments.shareOf(settings.retryFloor) };
  }

  tellHealth(hint: HealthHint): void {
    this.#health.tell(hint);
  }

  hearHealth(hear: (hint: HealthHint) => void): void {
    this.#health.hear(hear);
  }

  /** Gives back everything that no call uses. */
  async close(): Promise<void> {
    this.#health.close();
    await this.#allotments.close();
  }
}
