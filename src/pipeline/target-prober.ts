import type { Clock } from "../domain/clock.ts";
import { UpstreamFailure, type UpstreamFailureDetails } from "../domain/upstream-failure.ts";
import type { UpstreamRequest } from "../upstreams/adapter.ts";
import { EventReader } from "./event-reader.ts";
import type { Destination, FoundTarget } from "./routing/candidates.ts";
import type { TargetHealth } from "./routing/target-health.ts";
import { send, type UpstreamAnswer } from "./send.ts";
import type { PipelineServices } from "./services.ts";
import type { Snapshot } from "./snapshot.ts";
import { timeoutsOf } from "./timeouts-of.ts";

/** Tokens that a probe asks for at most. */
const probeTokens = 16;
/** The whole of a probe takes no longer than these, whatever is known of the target. */
const leastPatienceMs = 500;
const longestPatienceMs = 5_000;
/** A whole probe takes so many times as long as an answer may. */
const patienceFactor = 2;
/** An ejected target returns when so many probes in a row were answered. */
const answersToReturn = 2;

export interface ProberServices extends Pick<PipelineServices, "transport" | "hosts"> {
  readonly clock: Clock;
  readonly health: Pick<TargetHealth, "tryBeginProbe">;
  /** Told of the end of each probe, for metrics. */
  readonly onProbed: (target: string, failure: UpstreamFailureDetails | undefined) => void;
}

/**
 * Asks targets in doubt whether they answer, by small requests of the gateway's own, so that no
 * caller has to find out. Probes are in no plan and in no ledger.
 */
export class TargetProber {
  readonly #services: ProberServices;

  constructor(services: ProberServices) {
    this.#services = services;
  }

  /** Begins a probe unless one of the target is under way. Its end is told to the health. */
  probe(found: FoundTarget, snapshot: Snapshot): void {
    const watch = this.#services.health.tryBeginProbe(found.target.id);
    if (watch === undefined) return;
    const times = found.view.isEjected ? answersToReturn : 1;
    const patienceMs = Math.min(
      longestPatienceMs,
      Math.max(leastPatienceMs, watch.patienceMs * patienceFactor),
    );
    this.#askTimes(times, { ...found, snapshot, patienceMs }).then(
      (failure) => watch.ended(failure),
      // A request that cannot even be made tells nothing new of the target.
      (error: unknown) => watch.ended({ kind: "unavailable", message: String(error) }),
    );
  }

  async #askTimes(times: number, probe: Probe): Promise<UpstreamFailureDetails | undefined> {
    for (let time = 0; time < times; time += 1) {
      const failure = await this.#ask(probe);
      this.#services.onProbed(probe.target.id, failure);
      if (failure !== undefined) return failure;
    }
    return undefined;
  }

  async #ask(probe: Probe): Promise<UpstreamFailureDetails | undefined> {
    try {
      if (probe.model.kind === "chat") await this.#askChat(probe);
      else await this.#askEmbedding(probe);
      return undefined;
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
    while ((await events.next()) !== undefined);
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
    const body = await answer.readAll(probe.snapshot.settings.answerLimitBytes);
    exchange.decode({ headers: answer.headers, body });
  }

  #send(request: UpstreamRequest, probe: Probe): Promise<UpstreamAnswer> {
    const { clock, transport, hosts } = this.#services;
    const { upstream, patienceMs } = probe;
    return send(request, {
      upstream,
      timeouts: timeoutsOf(probe),
      endsAt: clock.monotonic() + patienceMs,
      clock,
      transport,
      // Nobody leaves: the probe ends by itself.
      callerSignal: new AbortController().signal,
      hosts,
      placeWaitMs: 0,
      isGuaranteed: true,
    });
  }
}

interface Probe extends Destination {
  readonly snapshot: Snapshot;
  readonly patienceMs: number;
}
