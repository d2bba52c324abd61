import type { Clock } from "../../domain/clock.ts";
import {
  UpstreamFailure,
  type UpstreamFailureDetails,
} from "../../domain/errors/upstream-failure.ts";
import type { CapacityGate } from "../../admission/capacity/place.ts";
import type { Destination, FoundTarget } from "../../routing/candidates.ts";
import type { TargetHealth } from "../../routing/health/target-health.ts";
import type { ProbeResult } from "../../routing/health/target-state.ts";
import type { HostProbes } from "../../upstream-client/host-probes.ts";
import type { Transport } from "../../upstream-client/transport.ts";
import { askTarget } from "./ask-target.ts";
import type { Snapshot } from "../../snapshot/snapshot.ts";

/**
 * The timeout of a probe's first event is the usual time multiplied by this factor, with a minimum.
 */
const leastTimeoutMs = 500;
const timeoutFactor = 2;
/** Probes in a row that must be answered to return a target. */
const probesToDecide = 2;

export interface ProberServices {
  readonly transport: Transport;
  readonly hosts: Pick<HostProbes, "canConnect">;
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
    const probe = { ...found, snapshot, timeoutMs };
    this.#askInTurn(probe).then(
      (result) => watch.ended(result),
      // A request that cannot be made is no evidence about the target.
      () => watch.ended("nothing"),
    );
  }

  async #askInTurn(probe: Probe): Promise<ProbeResult> {
    let result: ProbeResult = "nothing";
    for (let time = 0; time < probesToDecide; time += 1) {
      result = await this.#ask(probe);
      if (result !== "answered") return result;
    }
    return result;
  }

  async #ask(probe: Probe): Promise<ProbeResult> {
    let result = await this.#askOnce(probe);
    // The next request uses a fresh credential.
    if (typeof result !== "string" && result.kind === "stale-credential") {
      result = await this.#askOnce(probe);
    }
    this.#services.onProbed(probe.target.id, typeof result === "string" ? undefined : result);
    return result;
  }

  async #askOnce(probe: Probe): Promise<ProbeResult> {
    const { capacity } = this.#services;
    try {
      const { upstream, snapshot } = probe;
      await askTarget(
        { ...probe, answerLimitBytes: snapshot.settings.answerLimitBytes.embedding },
        // A probe is small and serves all calls, so it is not bound by the concurrency limits.
        { ...this.#services, places: capacity.requestPlaces(upstream, { isBound: false }) },
      );
      return "answered";
    } catch (error) {
      if (error instanceof UpstreamFailure) return error.details;
      throw error;
    }
  }
}

interface Probe extends Destination {
  readonly snapshot: Snapshot;
  readonly timeoutMs: number;
}
