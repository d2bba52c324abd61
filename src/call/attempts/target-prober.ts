import type { Clock } from "../../domain/clock.ts";
import {
  UpstreamFailure,
  type UpstreamFailureDetails,
} from "../../domain/errors/upstream-failure.ts";
import { nextOf } from "../../domain/waiting/flow.ts";
import type { CapacityGate } from "../../admission/capacity/place.ts";
import type { UpstreamRequest } from "../../upstreams/adapter.ts";
import { EventReader } from "../../upstream-client/event-reader.ts";
import type { Destination, FoundTarget } from "../../routing/candidates.ts";
import type { TargetHealth } from "../../routing/health/target-health.ts";
import type { ProbeResult } from "../../routing/health/target-state.ts";
import { send, type UpstreamAnswer } from "../../upstream-client/send.ts";
import type { HostProbes } from "../../upstream-client/host-probes.ts";
import type { Transport } from "../../upstream-client/transport.ts";
import type { Snapshot } from "../../snapshot/snapshot.ts";
import { timeoutsOf } from "../../upstream-client/timeouts-of.ts";

/** Limit on the tokens of a probe. */
const probeTokens = 16;
/** Timeout of a probe's first event: the usual time by this factor, with a minimum. */
const leastTimeoutMs = 500;
const timeoutFactor = 2;
/** Time limits after the first event. */
const restMs = 5_000;
const leastIdleMs = 1_000;
/** Probes in a row that must be answered to return a target, or fail to eject one in service. */
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
 * Probes targets in doubt with small requests, so that no caller has to find out. Probes count in
 * neither plans nor the ledger.
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
    const asking = found.view.isEjected ? this.#askInTurn(probe) : this.#askAtOnce(probe);
    asking.then(
      (result) => watch.ended(result),
      // A request that cannot be made is no evidence about the target.
      () => watch.ended("nothing"),
    );
  }

  /** An ejected target has to answer all of them. */
  async #askInTurn(probe: Probe): Promise<ProbeResult> {
    let result: ProbeResult = "nothing";
    for (let time = 0; time < probesToDecide; time += 1) {
      result = await this.#ask(probe);
      if (result !== "answered") return result;
    }
    return result;
  }

  /** A target in service has to answer one of them: a chance failure must not eject it. */
  async #askAtOnce(probe: Probe): Promise<ProbeResult> {
    const asked = Array.from({ length: probesToDecide }, () => this.#ask(probe));
    const results = await Promise.all(asked);
    return results.find((result) => result === "answered") ?? results[0] ?? "nothing";
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
    try {
      if (probe.model.kind === "chat") await this.#askChat(probe);
      else await this.#askEmbedding(probe);
      return "answered";
    } catch (error) {
      if (error instanceof UpstreamFailure) return error.details;
      throw error;
    }
  }

  async #askChat(probe: Probe): Promise<void> {
    const { chat } = probe.upstream.adapter;
    if (chat === undefined) return;
    const messages = [{ role: "user", content: "ping" } as const];
    const request = { model: probe.model.alias, messages, max_tokens: probeTokens, stream: true };
    const exchange = chat.encodeStream(request, probe.target.model);
    const answer = await this.#send(exchange.request, probe);
    const decoder = exchange.newDecoder({ malformedEvents: 0 });
    const events = new EventReader({ answer, decoder, onMalformed: () => undefined });
    while ((await nextOf(events)) !== undefined);
  }

  async #askEmbedding(probe: Probe): Promise<void> {
    const { embeddings } = probe.upstream.adapter;
    if (embeddings === undefined) return;
    const request = {
      model: probe.model.alias,
      inputs: ["ping"],
      dimensions: undefined,
      user: undefined,
      encodingFormat: "float",
    } as const;
    const exchange = embeddings.encode(request, probe.target.model);
    const answer = await this.#send(exchange.request, probe);
    const body = await answer.readAll(probe.snapshot.settings.answerLimitBytes.embedding);
    exchange.decode({ headers: answer.headers, body });
  }

  #send(request: UpstreamRequest, probe: Probe): Promise<UpstreamAnswer> {
    const { clock, transport, hosts, capacity } = this.#services;
    const { upstream, timeoutMs } = probe;
    const timeouts = timeoutsOf(probe);
    const firstByteMs = Math.min(timeouts.firstByteMs, timeoutMs);
    return send(request, {
      upstream,
      timeouts: {
        ...timeouts,
        firstByteMs,
        idleMs: Math.min(timeouts.idleMs, Math.max(leastIdleMs, timeoutMs)),
      },
      endsAt: clock.monotonic() + firstByteMs + restMs,
      clock,
      transport,
      // There is no caller: the probe ends by itself.
      callerSignal: new AbortController().signal,
      hosts,
      // It is small, and finds out for all.
      places: capacity.requestPlaces(upstream, { isBound: false }),
    });
  }
}

interface Probe extends Destination {
  readonly snapshot: Snapshot;
  readonly timeoutMs: number;
}
