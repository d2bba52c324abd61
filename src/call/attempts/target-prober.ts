import type { Clock } from "../../domain/clock.ts";
import {
  asBadCredential,
  UpstreamFailure,
  type UpstreamFailureDetails,
} from "../../domain/errors/upstream-failure.ts";
import type { CapacityGate } from "../../admission/capacity/place.ts";
import type { FoundTarget } from "../../routing/candidates.ts";
import type { TargetHealth } from "../../routing/health/target-health.ts";
import type { ProbeResult } from "../../routing/health/target-state.ts";
import type { Transport } from "../../upstream-client/transport.ts";
import { type AskedTarget, askTarget } from "./ask-target.ts";
import type { Snapshot } from "../../snapshot/snapshot.ts";

/**
 * The timeout of a probe's first event is the usual time multiplied by this factor, with a minimum.
 */
const leastTimeoutMs = 500;
const timeoutFactor = 2;
/** Probes in a row that must be answered: a target of which half of the requests fail stays out. */
const probesToReturn = 2;

export interface ProberServices {
  readonly transport: Transport;
  readonly clock: Clock;
  readonly health: Pick<TargetHealth, "tryBeginProbe">;
  readonly capacity: Pick<CapacityGate, "requestPlaces">;
  /** Called at the end of each probe, for metrics. */
  readonly onProbed: (target: string, failure: UpstreamFailureDetails | undefined) => void;
}

/**
 * Probes targets whose time out is over with small requests, so that no caller has to find out.
 * Probes count in neither plans nor the ledger.
 */
export class TargetProber {
  readonly #services: ProberServices;

  constructor(services: ProberServices) {
    this.#services = services;
  }

  /** Starts a probe unless one of the target is running. The health gets its result. */
  probe(found: FoundTarget, snapshot: Snapshot): void {
    const watch = this.#services.health.tryBeginProbe(found.target.id);
    if (watch === undefined) return;
    const timeoutMs = Math.max(leastTimeoutMs, watch.timeoutMs * timeoutFactor);
    this.#ask({ ...found, timeoutMs }, snapshot).then(
      (result) => watch.ended(result),
      // A request that cannot be made is no evidence about the target.
      () => watch.ended("nothing"),
    );
  }

  async #ask(
    asked: Omit<AskedTarget, "answerLimitBytes">,
    snapshot: Snapshot,
    isRepeated = false,
  ): Promise<ProbeResult> {
    const { capacity, onProbed } = this.#services;
    const answerLimitBytes = snapshot.settings.answerLimitBytes.embedding;
    // A probe is small and serves all calls, so it is not bound by the concurrency limits.
    const places = capacity.requestPlaces(asked.upstream, { isBound: false });
    try {
      for (let time = 0; time < probesToReturn; time += 1) {
        await askTarget({ ...asked, answerLimitBytes }, { ...this.#services, places });
        onProbed(asked.target.id, undefined);
      }
      return "answered";
    } catch (error) {
      if (!(error instanceof UpstreamFailure)) throw error;
      const isStale = error.details.kind === "stale-credential";
      if (isStale && !isRepeated) return this.#ask(asked, snapshot, true);
      const { details } = asBadCredential(error);
      onProbed(asked.target.id, details);
      return details;
    }
  }
}
