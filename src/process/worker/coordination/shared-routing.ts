import type { Capacity } from "../../../admission/capacity/capacity.ts";
import type { Clock } from "../../../domain/clock.ts";
import type { RoutingSharing } from "../../wiring/build-routing.ts";
import type { RoutingSettings } from "../../../domain/settings.ts";
import type { ConcurrencyLimit } from "../../../routing/health/concurrency-limit.ts";
import type { HealthHint } from "../../../routing/health/target-health.ts";
import type { CoordinationLink } from "./coordination-link.ts";
import { RemoteCapacity } from "./places/remote-capacity.ts";
import { RemoteBudget } from "./remote-budget.ts";
import { ReportedLimit } from "./reported-limit.ts";
import { RoutingReports } from "./routing-reports.ts";
import type { WorkerShare } from "./places/worker-share.ts";

export interface SharedRoutingOptions extends WorkerShare {
  readonly link: CoordinationLink;
  readonly clock: Clock;
}

/** What a worker shares with the others about targets. */
export class SharedRouting implements RoutingSharing {
  readonly #options: SharedRoutingOptions;
  readonly #reports: RoutingReports;
  #hearHealth = (_hint: HealthHint): void => undefined;

  constructor(options: SharedRoutingOptions) {
    this.#options = options;
    const { clock, link } = options;
    this.#reports = new RoutingReports({
      clock,
      tell: (report) => link.tell("routing.report", report),
    });
  }

  capacity(own: Capacity): RemoteCapacity {
    return new RemoteCapacity({ ...this.#options, own });
  }

  newLimit(targetId: string): ConcurrencyLimit {
    return new ReportedLimit(targetId, this.#reports);
  }

  budgets(own: Parameters<RoutingSharing["budgets"]>[0]): ReturnType<RoutingSharing["budgets"]> {
    const parts = { link: this.#options.link, reports: this.#reports };
    return {
      retries: new RemoteBudget({ ...parts, kind: "retries", own: own.retries }),
      hedges: new RemoteBudget({ ...parts, kind: "hedges", own: own.hedges }),
    };
  }

  shareOf(settings: RoutingSettings): RoutingSettings {
    const retryFloor = Math.floor(settings.retryFloor / this.#options.workers);
    return { ...settings, retryFloor };
  }

  tellHealth(hint: HealthHint): void {
    this.#options.link.tell("health.changed", hint);
  }

  hearHealth(hear: (hint: HealthHint) => void): void {
    this.#hearHealth = hear;
  }

  /** Applies what another worker learned. */
  healthChanged(hint: HealthHint): void {
    this.#hearHealth(hint);
  }
}
