import type { ConfiguredPlaces } from "../../../../src/admission/capacity/place.ts";
import { Random } from "../../random.ts";
import { VirtualTime } from "../../virtual-time.ts";
import { SharedServer, type ServerFault } from "../shared-server.ts";
import { PlaceTally } from "./place-tally.ts";
import { PlaceWorker, poolBound } from "./place-worker.ts";
import { PlacesServer, type PlaceTerms } from "./places-server.ts";

export interface PlaceFleetOptions {
  readonly seed: number;
  readonly workers: number;
  /** Places of the pool. */
  readonly places: number;
  /** Calls that arrive, by the most that the places can serve. */
  readonly load: number;
  readonly seconds: number;
  readonly fault?: ServerFault;
  /** A third of the workers die. */
  readonly deathAtMs?: number;
  readonly terms: PlaceTerms & {
    readonly decisionMs: number;
    readonly settleMs: number;
    readonly networkMs: number;
    readonly timeoutMs: number;
  };
}

export type PlaceFleetResult = ReturnType<PlaceTally["result"]> & {
  /** Most places that were allotted at once, by those that there are: also to dead workers. */
  readonly allotted: number;
  /** Part of the time that the server spent on commands. */
  readonly utilisation: number;
  readonly exchangesASecond: number;
  /** Commands that got no answer in time, by those that were sent. */
  readonly unanswered: number;
};

/** Workers start within a beat, and are measured once queues have settled. */
const startMs = 2_000;
const settledMs = 10_000;
const meanRunMs = 2_000;
const waitMs = 5_000;
const lookMs = 50;
/** A call that is answered sooner does not count as waiting: it has only asked the server. */
const roundTripsMs = 10;
/** The first one makes half of all calls, the others as many each. */
const accounts = 10;

const tokensPerMinute = 1e12;

/** Runs workers that share the places of one pool. Equal seeds, equal results. */
export function runPlaceFleet(options: PlaceFleetOptions): PlaceFleetResult {
  const time = new VirtualTime();
  const random = new Random(options.seed);
  const { fault, terms, seconds } = options;
  const { networkMs } = terms;
  const places = new PlacesServer({ time, terms, networkMs });
  const server = new SharedServer({ time, fault, onStateLost: () => places.flush() });
  const tally = new PlaceTally({ time, places: options.places, fromMs: settledMs });
  const stage: Stage = { time, tally, workers: [] };
  for (let number = 1; number <= options.workers; number += 1) {
    const begin = (): void => {
      stage.workers.push(
        new PlaceWorker({
          ...terms,
          time,
          server,
          places,
          number,
          random: random.fork(`worker ${number}`),
          snapshot: snapshotOf(options.places),
          workers: options.workers,
          isRefused: () => isKilled(fault, time.now),
        }),
      );
    };
    time.schedule(begin, random.next() * startMs);
  }
  time.schedule(() => startCalls(options, stage, random.fork("calls")), startMs);
  const { deathAtMs } = options;
  if (deathAtMs !== undefined) time.schedule(() => killThird(stage), deathAtMs);
  const allotted = watchAllotted(options, { time, places });
  time.runUntil(() => false, { untilMs: seconds * 1_000, steps: Infinity });
  const unanswered = stage.workers.reduce((sum, { link }) => sum + link.failed, 0);
  return {
    ...tally.result(),
    allotted: allotted(),
    utilisation: server.busyMs / (seconds * 1_000),
    exchangesASecond: places.exchanges / seconds,
    unanswered: unanswered / (unanswered + server.commands),
  };
}

interface Stage {
  readonly time: VirtualTime;
  readonly tally: PlaceTally;
  readonly workers: PlaceWorker[];
}

/** Calls arrive at random at living workers, independent of each other. */
function startCalls(options: PlaceFleetOptions, stage: Stage, random: Random): void {
  const { time, workers } = stage;
  const meanMs = meanRunMs / (options.places * options.load);
  const exponential = (mean: number): number => -mean * Math.log(1 - random.next());
  const arrive = (): void => {
    time.schedule(arrive, exponential(meanMs));
    const living = workers.filter(({ isDead }) => !isDead);
    const account = random.chance(0.5) ? 0 : random.whole(1, accounts - 1);
    void call(random.pick(living), account, { ...stage, runMs: exponential(meanRunMs) });
  };
  arrive();
}

async function call(
  worker: PlaceWorker,
  account: number,
  { time, tally, runMs }: Stage & { readonly runMs: number },
): Promise<void> {
  const askedAt = time.now;
  const isHeavy = account === 0;
  let isWaiting = false;
  const cancel = time.schedule(() => {
    isWaiting = !worker.isDead;
    if (isWaiting) tally.waits(1);
    if (isWaiting) worker.waiting += 1;
  }, roundTripsMs);
  const leave = await worker.enter(`account ${account}`, waitMs);
  if (worker.isDead) return;
  cancel();
  if (isWaiting) tally.waits(-1);
  if (isWaiting) worker.waiting -= 1;
  if (leave === undefined) return tally.refused(isHeavy);
  tally.served(isHeavy, time.now - askedAt);
  time.schedule(() => {
    tally.left();
    if (!worker.isDead) leave();
  }, runMs);
}

/** Their calls run on at the upstream, and hold their places there. */
function killThird({ tally, workers }: Stage): void {
  for (const worker of workers.slice(0, Math.floor(workers.length / 3))) {
    worker.die();
    tally.waits(-worker.waiting);
  }
}

function watchAllotted(
  options: PlaceFleetOptions,
  { time, places }: { readonly time: VirtualTime; readonly places: PlacesServer },
): () => number {
  let most = 0;
  const look = (): void => {
    most = Math.max(most, places.heldAt(poolBound));
    time.schedule(look, lookMs);
  };
  look();
  return () => most / options.places;
}

function isKilled(fault: ServerFault | undefined, now: number): boolean {
  return fault?.kind === "killed" && now >= fault.fromMs && now < fault.untilMs;
}

function snapshotOf(places: number): ConfiguredPlaces {
  const pool = {
    name: "shared",
    kind: "shared",
    tokensPerMinute,
    maxInFlight: places,
    onDemandFloorPercent: 20,
    unitTokensPerMinute: 1_000,
  } as const;
  const upstream = { maxInFlight: Infinity, drain: undefined };
  return { pools: new Map([["shared", pool]]), upstreams: new Map([["up", upstream]]) };
}
