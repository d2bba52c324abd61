import { ranksIn } from "./check-sessions.ts";
import { checkEnd } from "./checks.ts";
import { EventLog, type LogLine } from "./event-log.ts";
import { Gateway } from "./gateway.ts";
import { KeyRegister } from "./key-register.ts";
import { SpoolFolder, UsageDatabase } from "./ledger.ts";
import { SharedLimiter } from "./limiter.ts";
import { makeScenario } from "./make-scenario.ts";
import { Random } from "./random.ts";
import { CallRecord, type Attempt, type Violation } from "./records.ts";
import type { EventPlan, Scenario } from "./scenario.ts";
import { UpstreamModel } from "./upstream.ts";
import { VirtualTime } from "./virtual-time.ts";
import { RetryCount, violate, type World } from "./world.ts";

export interface RunResult {
  readonly seed: number;
  readonly violations: readonly Violation[];
  /** Differs between runs with any difference in their logs. */
  readonly digest: string;
  readonly lines: readonly LogLine[];
  readonly figures: RunFigures;
  readonly calls: readonly CallRecord[];
  /** All requests to upstreams, including probes. */
  readonly attempts: readonly Attempt[];
}

export interface RunFigures {
  readonly calls: number;
  readonly attempts: number;
  readonly answered: number;
  readonly refused: number;
  readonly left: number;
  readonly crashed: number;
  readonly provisioned: number;
  /** Calls whose session ranked targets. */
  readonly ranked: number;
  readonly virtualMs: number;
  readonly steps: number;
}

/** Longer than any call takes after the last arrival. */
const longestRestMs = 15 * 60_000;
/** The time until every window is empty. */
const restMs = 80_000;
const settledMs = 8_000;
const mostSteps = 300_000;
/** Additional steps for each call. */
const stepsOfCall = 200;

export function simulateSeed(seed: number, keepsLines = false): RunResult {
  return simulate(makeScenario(seed), keepsLines);
}

/** Runs a scenario to its end and returns the violations. */
export function simulate(scenario: Scenario, keepsLines = false): RunResult {
  const spools = new SpoolFolder();
  try {
    return new Run(scenario, { spools, keepsLines }).result();
  } finally {
    spools.remove();
  }
}

/** All parts of a run. */
export interface Stage {
  readonly world: World;
  readonly gateways: readonly Gateway[];
  readonly upstreams: ReadonlyMap<string, UpstreamModel>;
  readonly limiter: SharedLimiter;
  readonly database: UsageDatabase;
  readonly keys: KeyRegister;
}

class Run implements Stage {
  readonly world: World;
  readonly gateways: readonly Gateway[];
  readonly upstreams: ReadonlyMap<string, UpstreamModel>;
  readonly limiter: SharedLimiter;
  readonly database: UsageDatabase;
  readonly keys: KeyRegister;
  readonly #records: readonly CallRecord[];
  /** The number of first calls that are over. */
  #overCalls = 0;

  constructor(scenario: Scenario, options: { spools: SpoolFolder; keepsLines: boolean }) {
    const time = new VirtualTime();
    this.#records = scenario.calls.map((plan) => new CallRecord(plan));
    const world: World = {
      scenario,
      time,
      log: new EventLog(time, options.keepsLines),
      random: new Random(scenario.seed).fork("run"),
      calls: new Map(this.#records.map((record) => [record.plan.id, record])),
      violations: [],
      grantedRetries: new RetryCount(),
      madeRetries: new RetryCount(),
    };
    this.world = world;
    this.upstreams = new Map(
      scenario.upstreams.map((plan) => [plan.name, new UpstreamModel(plan, world)]),
    );
    this.keys = new KeyRegister(scenario.keys);
    this.limiter = new SharedLimiter(world, this.keys);
    this.database = new UsageDatabase(world);
    const around = { ...this.#shared(), spools: options.spools };
    this.gateways = scenario.gateways.map((plan) => new Gateway(plan, around));
  }

  result(): RunResult {
    const { world } = this;
    const { scenario, time } = world;
    for (const event of scenario.events) time.schedule(() => this.#happen(event), event.atMs);
    for (const record of this.#records) time.schedule(() => this.#arrive(record), record.plan.atMs);
    const lastMs = Math.max(0, ...scenario.calls.map(({ atMs }) => atMs));
    const steps = mostSteps + stepsOfCall * this.#records.length;
    const limits = { untilMs: lastMs + longestRestMs, steps };
    time.runUntil(() => this.#isQuiet(lastMs), limits);
    this.#rest();
    checkEnd(this);
    const result = {
      seed: scenario.seed,
      violations: [...world.violations],
      digest: world.log.digest(),
      lines: [...world.log.lines],
      figures: this.#figures(),
      calls: this.#records,
      attempts: [...this.upstreams.values()].flatMap(({ attempts }) => attempts),
    };
    this.#close();
    return result;
  }

  #shared() {
    const { world, upstreams, limiter, database, keys } = this;
    return { world, upstreams, limiter, database, keys };
  }

  #isQuiet(lastMs: number): boolean {
    if (this.world.time.now < lastMs) return false;
    // Called after each step; calls that are over stay over.
    while (this.#records[this.#overCalls]?.isOver === true) this.#overCalls += 1;
    return this.#overCalls === this.#records.length;
  }

  /** Ends all faults and lets running work finish. */
  #rest(): void {
    const { time } = this.world;
    for (const { isOver, plan } of this.#records) {
      if (!isOver) violate(this.world, "hangs", "never ended", plan.id);
    }
    for (const upstream of this.upstreams.values()) upstream.endFaults();
    this.database.comeBack();
    for (const gateway of this.gateways) gateway.start();
    // After all messages have arrived, so that no other request interferes.
    time.schedule(() => {
      for (const { id } of this.limiter.audits) this.limiter.probe(id);
    }, settledMs);
    const untilMs = time.now + restMs;
    time.runUntil(() => false, { untilMs, steps: time.steps + mostSteps });
    for (const { process } of this.gateways) {
      if (process === undefined) continue;
      const limits = { untilMs: time.now + restMs, steps: time.steps + mostSteps };
      let isFlushed = false;
      const again = (is: boolean): void => {
        isFlushed = is;
        if (!is) void process.ledger.flush().then(again);
      };
      again(false);
      time.runUntil(() => isFlushed, limits);
      if (!isFlushed) violate(this.world, "ledger", `${process.name} cannot flush its ledger`);
    }
  }

  /** Releases what the runtime keeps. The result has been read: all further effects are lost. */
  #close(): void {
    for (const { processes } of this.gateways) for (const process of processes) process.close();
    this.world.time.runUntil(() => true, { untilMs: 0, steps: 0 });
  }

  #arrive(record: CallRecord): void {
    const { gateways } = this;
    const { plan } = record;
    this.world.log.note(`arrives: ${plan.kind} ${plan.alias} of ${plan.key}`, plan.id);
    // A balancer in front skips gateways that are down.
    for (let offset = 0; offset < gateways.length; offset += 1) {
      if (gateways[(plan.gateway + offset) % gateways.length]?.take(record) === true) return;
    }
    record.endedAt = this.world.time.now;
    this.world.log.note("nobody lives to take it", plan.id);
  }

  #happen(event: EventPlan): void {
    const { world } = this;
    world.log.note(JSON.stringify(event));
    switch (event.type) {
      case "faults":
        return this.upstreams.get(event.upstream)?.beginFaults(event);
      case "crash": {
        const gateway = this.gateways[event.gateway];
        gateway?.crash();
        world.time.schedule(() => gateway?.start(), event.downMs);
        return;
      }
      case "wall-jump":
        return this.gateways[event.gateway]?.process?.clock.jumpWall(event.byMs);
      case "limits":
        return this.keys.setLimits(event.key, event.limits);
      case "units":
        this.keys.setUnits(event.key, event.units, world.time.now);
        for (const { process } of this.gateways) process?.pools.unitsChanged();
        return;
      case "revoke": {
        this.keys.revoke(event.key, world.time.now);
        for (const { process } of this.gateways) {
          process?.running.endStale();
          process?.pools.unitsChanged();
        }
        return;
      }
      case "places":
        this.keys.changedAt = world.time.now;
        for (const { process } of this.gateways) {
          process?.setPlaces(event.upstream, event.maxInFlight);
        }
        return;
      case "limiter-slow":
        return this.limiter.slowDown(event.delayMs, event.forMs);
      case "database-down":
        return this.database.goAway(event.forMs);
    }
  }

  #figures(): RunFigures {
    const records = this.#records;
    const count = (is: (record: CallRecord) => boolean): number => records.filter(is).length;
    return {
      calls: records.length,
      attempts: records.reduce((sum, { attempts }) => sum + attempts.length, 0),
      answered: count(({ isAnswered }) => isAnswered),
      refused: count(({ error }) => error?.status === 429),
      left: count(({ leftAt }) => leftAt !== undefined),
      crashed: count(({ crashedAt }) => crashedAt !== undefined),
      provisioned: count(({ opened }) => opened?.capacityClass === "provisioned"),
      ranked: count((record) => ranksIn(record).length > 0),
      virtualMs: this.world.time.now,
      steps: this.world.time.steps,
    };
  }
}
