import type { Transport } from "../../src/upstream-client/transport.ts";
import { checkBegin } from "./check-begin.ts";
import { Connection } from "./network.ts";
import type { Random } from "./random.ts";
import type { Attempt, CallRecord } from "./records.ts";
import { converseWire } from "./converse-wire.ts";
import { openAiWire } from "./openai-wire.ts";
import { startOfTime, type Fault, type FaultSpan, type UpstreamPlan } from "./scenario.ts";
import { writeScript, type Script } from "./upstream-answer.ts";
import type { ProcessClock } from "./virtual-time.ts";
import type { UpstreamRequest, Wire } from "./wire.ts";
import { violate, type World } from "./world.ts";

/** How a gateway's process reaches upstreams. */
export interface Sender {
  readonly process: string;
  readonly clock: ProcessClock;
  readonly connections: Set<Connection>;
  /** The limit of concurrent requests to one upstream. */
  /** The most places that an upstream had since a time. */
  readonly placesAt: (upstream: string, since: number) => number;
}

/** Usual faults; each is common enough to occur in a few hundred seeds. */
const usualFaults: Readonly<Partial<Record<Fault, number>>> = {
  refused: 2,
  "hanging-connect": 1,
  "reset-before-headers": 2,
  "reset-after-headers": 1,
  throttled: 2,
  "throttled-with-time": 2,
  failed: 2,
  overloaded: 2,
  "error-page": 1,
  "bad-credential": 0.3,
  "stale-credential": 1,
  invalid: 0.5,
  overflow: 0.5,
  "content-refused": 0.5,
  "unknown-model": 0.3,
  redirect: 0.3,
  "stall-before-headers": 1,
  "stall-after-headers": 1,
  "stall-mid": 1,
  "cut-mid": 2,
  "reset-mid": 2,
  garbage: 1,
  "error-mid": 1,
  "malformed-event": 1,
  empty: 1,
  compressed: 0.3,
  "no-usage": 2,
  "usage-twice": 0.5,
  slow: 2,
  "never-closes": 1,
  "beyond-cap": 1,
};

/** The text of the gateway's probes. */
const probeWord = "ping";

interface Begun {
  readonly id: string;
  readonly callId: string;
  readonly outputTokens: number;
  /** The fault of the call itself. */
  readonly fault: Fault | undefined;
}

interface RunningFaults extends FaultSpan {
  /** The number of requests since its begin. */
  requests: number;
}

/** A simulated provider with a record of all requests. */
export class UpstreamModel {
  readonly plan: UpstreamPlan;
  /** All requests, including probes. */
  readonly attempts: Attempt[] = [];
  readonly #world: World;
  readonly #wire: Wire;
  readonly #random: Random;
  readonly #faultSpans = new Set<RunningFaults>();
  #probes = 0;

  constructor(plan: UpstreamPlan, world: World) {
    this.plan = plan;
    this.#world = world;
    this.#wire = plan.kind === "bedrock" ? converseWire : openAiWire;
    this.#random = world.random.fork(plan.name);
  }

  /** Makes a share of the requests fail for some time. */
  beginFaults(span: FaultSpan): void {
    const running = { ...span, requests: 0 };
    this.#faultSpans.add(running);
    this.#world.time.schedule(() => this.#faultSpans.delete(running), span.forMs);
  }

  /** Ends all faults. */
  endFaults(): void {
    this.#faultSpans.clear();
  }

  readonly send = (
    sender: Sender,
    url: URL,
    request: Parameters<Transport>[1],
  ): ReturnType<Transport> => {
    const asked = this.#wire.read(url, request);
    const attempt =
      asked.call === probeWord ? this.#probe(asked, sender) : this.#ask(asked, sender);
    const connection: Connection = new Connection({
      attempt,
      script: attempt.script,
      clock: sender.clock,
      progress: request.progress,
      onEnded: (ended, how) => {
        sender.connections.delete(connection);
        ended.endedAt = this.#world.time.now;
        ended.how = how;
        this.#world.log.note(`${ended.id} ended: ${how}`, ended.call);
      },
    });
    sender.connections.add(connection);
    return connection.open();
  };

  #ask(asked: UpstreamRequest, sender: Sender): Attempt {
    const call = this.#world.calls.get(asked.call);
    if (call === undefined) throw new Error(`an upstream was asked for no call: ${asked.call}`);
    const { id: callId, outputTokens, fault: own } = call.plan;
    const id = `${callId}.${call.attempts.length}`;
    const attempt = this.#begin(asked, sender, { id, callId, outputTokens, fault: own });
    checkBegin(this.#world, call, attempt);
    this.#checkPlaces(call, attempt, sender);
    call.attempts.push(attempt);
    return attempt;
  }

  /** A probe of a gateway: without a call, and without a place. */
  #probe(asked: UpstreamRequest, sender: Sender): Attempt {
    this.#probes += 1;
    const id = `probe.${this.plan.name}.${this.#probes}`;
    const begun = { id, callId: id, outputTokens: asked.cap ?? 0, fault: undefined };
    return this.#begin(asked, sender, begun);
  }

  #begin(asked: UpstreamRequest, sender: Sender, begun: Begun): Attempt {
    const { id, callId, outputTokens } = begun;
    const { time, log } = this.#world;
    const random = this.#random.fork(id);
    const drawn = this.#drawFault(random);
    const fault = this.#isSkewed(asked) ? "skewed" : (begun.fault ?? drawn);
    const wire = this.#wire;
    const frame = { plan: this.plan, wire, request: asked, tag: id, outputTokens, fault };
    const attempt: Attempt = {
      id,
      call: callId,
      isProbe: callId === id,
      process: sender.process,
      upstream: this.plan.name,
      model: asked.model,
      startedAt: time.now,
      fault,
      script: this.#dated(writeScript(frame, random)),
      mustEndAtOnce: false,
      headersAt: undefined,
      lastByteAt: undefined,
      endedAt: undefined,
      how: undefined,
    };
    this.attempts.push(attempt);
    log.note(`${id} at ${this.plan.name}/${asked.model}: ${fault ?? "fine"}`, callId);
    return attempt;
  }

  get #wallMs(): number {
    return startOfTime + this.#world.time.now;
  }

  /** Providers refuse signatures that deviate by five minutes. */
  #isSkewed({ signedAt }: UpstreamRequest): boolean {
    return signedAt !== undefined && Math.abs(signedAt - this.#wallMs) > 5 * 60_000;
  }

  #dated(script: Script): Script {
    const date = new Date(this.#wallMs).toUTCString();
    return { ...script, headers: { ...script.headers, date } };
  }

  /**
   * Guaranteed calls may exceed the places if others hold them, and an attempt keeps its place even
   * if guaranteed calls arrive or a reload removes places.
   */
  #checkPlaces(call: CallRecord, { id }: Attempt, { connections, placesAt }: Sender): void {
    let taken = 0;
    for (const { upstream, isProbe, call: other } of connections) {
      const isSold = this.#world.calls.get(other)?.opened?.capacityClass === "provisioned";
      if (upstream === this.plan.name && !isProbe && !isSold) taken += 1;
    }
    const places = placesAt(this.plan.name, call.arrivedAt);
    if (taken < places || call.opened?.capacityClass === "provisioned") return;
    violate(
      this.#world,
      "places",
      `${id} is one of ${taken + 1} at ${this.plan.name}`,
      call.plan.id,
    );
  }

  #drawFault(random: Random): Fault | undefined {
    for (const running of this.#faultSpans) if (isHit(running, random)) return running.fault;
    return random.chance(this.plan.faultShare) ? random.weighted(usualFaults) : undefined;
  }
}

function isHit(running: RunningFaults, random: Random): boolean {
  const { share, isEven, requests } = running;
  running.requests += 1;
  if (isEven !== true) return random.chance(share);
  return Math.floor(running.requests * share) > Math.floor(requests * share);
}
