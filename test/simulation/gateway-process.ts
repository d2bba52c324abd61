import { PublishedPrices } from "../../src/domain/money/price.ts";
import type { RoutingServices } from "../../src/process/wiring/build-services.ts";
import { buildServices } from "../../src/process/wiring/build-services.ts";
import { GatewayError } from "../../src/domain/errors/gateway-error.ts";
import type { Caller } from "../../src/domain/keys/key.ts";
import type { Environment, Model } from "../../src/domain/model.ts";
import type { Plan } from "../../src/domain/limits/plan.ts";
import { RefusalLog } from "../../src/admission/refusals/refusal-log.ts";
import { RunningCalls } from "../../src/call/running-calls.ts";
import type { CallServices } from "../../src/call/services.ts";
import type { Snapshot, Upstream } from "../../src/snapshot/snapshot.ts";
import type { TransportRequest } from "../../src/upstream-client/transport.ts";
import { noLog } from "../../src/telemetry/log/log-output.ts";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";
import { plainConnections, noImageFetch } from "../support/pipeline-fixtures.ts";
import { auditBudgets } from "./budget-audit.ts";
import { CapacityAudit } from "./capacity-audit.ts";
import { usageTimeoutMs } from "./finished-answer.ts";
import type { KeyRegister } from "./key-register.ts";
import { makeAdapter } from "./make-adapter.ts";
import { ProcessLedger, type SpoolFolder, type UsageDatabase } from "./ledger.ts";
import type { SharedLimiter } from "./limiter.ts";
import type { Connection } from "./network.ts";
import type { Random } from "./random.ts";
import type { GatewayPlan, Scenario, UpstreamPlan } from "./scenario.ts";
import type { UpstreamModel } from "./upstream.ts";
import { ProcessClock } from "./virtual-time.ts";
import { violate, type World } from "./world.ts";
import { testPeppers } from "../support/test-peppers.ts";

/** The environment of a gateway's successive processes. */
export interface ProcessEnvironment {
  readonly world: World;
  readonly upstreams: ReadonlyMap<string, UpstreamModel>;
  readonly limiter: SharedLimiter;
  readonly database: UsageDatabase;
  readonly spools: SpoolFolder;
  readonly keys: KeyRegister;
}

export interface ProcessPlan {
  readonly name: string;
  readonly gateway: GatewayPlan;
  /** The folder with the files of the previous process. */
  readonly folder: string;
}

/** One process of a gateway: the real pipeline, with everything around it simulated. */
export class GatewayProcess {
  readonly name: string;
  readonly clock: ProcessClock;
  readonly services: CallServices;
  readonly ledger: ProcessLedger;
  readonly connections = new Set<Connection>();
  snapshot: Snapshot;
  /** The places of upstreams before the change. */
  readonly #places: { readonly name: string; readonly places: number; readonly until: number }[] =
    [];
  readonly running: RunningCalls;
  readonly places: CapacityAudit;
  readonly pools: RoutingServices["capacity"];
  readonly health: RoutingServices["health"];
  readonly #around: ProcessEnvironment;
  readonly #random: Random;

  constructor({ name, gateway, folder }: ProcessPlan, around: ProcessEnvironment) {
    const { world, database, keys, limiter } = around;
    this.name = name;
    this.#around = around;
    this.#random = world.random.fork(name);
    this.clock = new ProcessClock(world.time, gateway);
    this.running = new RunningCalls((id) => keys.isLive(id), undefined, this.clock);
    this.ledger = new ProcessLedger({
      world,
      database,
      clock: this.clock,
      folder,
      onOpened: (call) => {
        const record = world.calls.get(call.id);
        if (record?.opened !== undefined) violate(world, "ledger", "opened twice", call.id);
        if (record !== undefined) record.opened = call;
        world.log.note(`opened as ${call.capacityClass}`, call.id);
      },
      onClosed: (row) => {
        const record = world.calls.get(row.id);
        if (record?.closed !== undefined) violate(world, "ledger", "closed twice", row.id);
        if (record !== undefined) record.closed = row;
        world.log.note(`closed: ${row.outcome} ${row.status} ${row.code ?? ""}`, row.id);
      },
    });
    this.snapshot = this.#makeSnapshot(world.scenario);
    const services = this.#makeServices(name);
    this.pools = services.capacity;
    this.health = services.health;
    this.places = new CapacityAudit(services.capacity, {
      world,
      process: name,
      keys,
      limiter,
      placesAt: (upstream) => this.#placesAt(upstream),
    });
    this.services = {
      ...services,
      capacity: this.places,
      budget: auditBudgets(services.budget, world, name),
    };
  }

  get environment(): Environment {
    const models: ReadonlyMap<string, Model> = new Map(
      this.#around.world.scenario.models.map((model) => [model.alias, model]),
    );
    return { name: "test", models };
  }

  /** Random numbers of one call do not change those of another. */
  servicesFor(callId: string): CallServices {
    return { ...this.services, random: this.#random.fork(callId).next };
  }

  callerOf(keyId: string, secret: number): Caller {
    return this.#around.keys.callerOf(keyId, secret);
  }

  /** Stops everything in the process at once. */
  crash(folder: string): void {
    this.clock.stop();
    for (const connection of this.connections) connection.drop();
    this.ledger.crash(folder);
  }

  /** Ends the calls that were running in a crash too: the runtime keeps signals with listeners. */
  close(): void {
    this.clock.stop();
    this.ledger.close();
    this.running.endAll(
      () => new GatewayError("model_unavailable", { message: "the run is over" }),
    );
  }

  #makeServices(name: string): CallServices & RoutingServices {
    const { world, limiter, keys } = this.#around;
    const { clock, running } = this;
    const none = (): number => 0;
    const telemetry = createTelemetry({
      settings: {
        logLevel: "off",
        logFormat: "text",
        logsUpstreamMessages: false,
        logsAccess: false,
        logBufferBytes: 0,
      },
      clock,
      log: noLog,
      process: 1,
      version: "0",
      gauges: {
        sluice_open_requests: none,
        sluice_ledger_queue_rows: none,
        sluice_ledger_spool_bytes: none,
        sluice_keys_age_seconds: none,
      },
    });
    const services = buildServices({
      peppers: testPeppers(),
      config: {
        processes: 1,
        limits: { store: "memory", defaultOutputTokens: 200 },
        upstreamRequests: 1_000,
      },
      routing: () => world.scenario.routing,
      routingEvents: telemetry.routing,
      units: keys,
      prices: new PublishedPrices(),
      events: telemetry.events,
      refusals: new RefusalLog(),
      // Not started: the event loop of a run is never late. Only the limit of calls is used.
      overload: {
        settings: () => ({ loopDelayMs: 100, maxCalls: world.scenario.maxCalls }),
        callsUnderWay: () => running.size,
        events: telemetry.overload,
      },
      clock,
      running,
      ledger: this.ledger.calls,
      random: this.#random.next,
      limits: limiter.clientOf({ process: name, clock }),
      transport: (url, request) => this.#send(url, request),
      resolveHost: () => Promise.resolve([]),
    });
    return {
      ...services,
      onSettleFailed: (callId, error) =>
        violate(world, "settlement", `could not be settled: ${String(error)}`, callId),
    };
  }

  #send(url: string, request: TransportRequest): ReturnType<UpstreamModel["send"]> {
    const { name: process, clock, connections } = this;
    const placesAt = (upstream: string, since: number): number => {
      const before = this.#places.filter(({ name, until }) => name === upstream && until >= since);
      return Math.max(this.#placesAt(upstream), ...before.map(({ places }) => places));
    };
    const sender = { process, clock, connections, placesAt };
    return this.#upstreamAt(url).send(sender, new URL(url), request);
  }

  /** A reload that changes only the places of an upstream. */
  setPlaces(name: string, maxInFlight: number): void {
    const upstreams = new Map(this.snapshot.upstreams);
    const upstream = upstreams.get(name);
    const until = this.#around.world.time.now;
    this.#places.push({ name, places: this.#placesAt(name), until });
    if (upstream !== undefined) upstreams.set(name, { ...upstream, maxInFlight });
    this.snapshot = { ...this.snapshot, upstreams };
    this.pools.follow(this.snapshot);
  }

  #placesAt(upstream: string): number {
    return this.snapshot.upstreams.get(upstream)?.maxInFlight ?? 0;
  }

  #upstreamAt(url: string): UpstreamModel {
    const name = new URL(url).hostname.replace(/\.sim$/, "");
    const upstream = this.#around.upstreams.get(name);
    if (upstream === undefined) throw new Error(`nobody lives at ${url}`);
    return upstream;
  }

  #makeSnapshot(scenario: Scenario): Snapshot {
    const plans = this.#around.keys.plans();
    return {
      environmentsByHost: new Map(),
      defaultEnvironment: undefined,
      plans: new Map(plans.map((plan: Plan) => [plan.name, plan])),
      pools: new Map(scenario.pools.map((pool) => [pool.name, pool])),
      routing: scenario.routing,
      upstreams: new Map(scenario.upstreams.map((plan) => [plan.name, this.#upstreamOf(plan)])),
      hooks: [],
      settings: {
        answerLimitBytes: { chat: 1_000_000, embedding: 1_000_000 },
        chatAnswerValues: 1_000_000,
        malformedEvents: 10,
        usageTimeoutMs,
        endUsers: "off",
        tags: [],
        imageFetch: noImageFetch,
      },
    };
  }

  #upstreamOf(plan: UpstreamPlan): Upstream {
    const { name, timeouts, maxInFlight, drain } = plan;
    return {
      name,
      timeouts,
      connections: plainConnections,
      maxInFlight,
      drain,
      forwardEndUsers: "pseudonym",
      stateAccount: undefined,
      adapter: makeAdapter(plan, this.clock),
    };
  }
}
