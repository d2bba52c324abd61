import { SlidingSum } from "../../../../src/domain/limits/sliding-sum.ts";
import { countedSlots, slotAt } from "../../../../src/domain/limits/slots.ts";
import { Random } from "../../random.ts";
import { VirtualTime } from "../../virtual-time.ts";
import { HotServer, type HotKeyTerms } from "./hot-server.ts";
import { HotWorker, type HotDecision } from "./hot-worker.ts";
import { SlidingWorst } from "./sliding-worst.ts";

export interface HotKeyOptions {
  readonly seed: number;
  readonly workers: number;
  readonly keys: number;
  readonly callsPerSecond: number;
  /** The part of all calls that one key makes. */
  readonly hotShare: number;
  /** How often that key calls, by its limit. */
  readonly hotLoad: number;
  readonly seconds: number;
  readonly hasLeases: boolean;
  readonly terms: HotKeyTerms;
}

export interface HotKeyResult {
  /** By all calls, of all keys. */
  readonly scriptsPerCall: number;
  /** Part of the time that the server spent on commands. */
  readonly utilisation: number;
  readonly recalls: number;
  /** Most requests of the hot key in any 60 seconds, by its limit. */
  readonly worst: number;
  readonly hotCalls: number;
  readonly hotAdmitted: number;
  /** Admitted under leases. */
  readonly hotLeased: number;
  /** By the server although fewer requests were admitted than the limit allows. */
  readonly refusedWithRoom: number;
  /** The same, by a worker that repeats a refusal of the same second. */
  readonly repeatedWithRoom: number;
  /** Waits for decisions, sorted, in milliseconds. */
  readonly waits: Float64Array;
}

const hotKey = 0;
const meanRunMs = 2_000;
const minuteMs = 60_000;

/** Runs workers that all get calls of one key. Equal seeds, equal results. */
export function runHotKey(options: HotKeyOptions): HotKeyResult {
  const time = new VirtualTime();
  const random = new Random(options.seed);
  const { workers: count, terms, seconds, hasLeases } = options;
  const limit = Math.floor((options.callsPerSecond * options.hotShare * 60) / options.hotLoad);
  const tally = new HotTally(time, limit);
  const server = new HotServer({
    time,
    terms,
    workers: count,
    limitOf: (key) => (key === hotKey ? limit : Infinity),
    onRecall: (key) => {
      const heard = terms.networkMs;
      for (const worker of workers) time.schedule(() => worker.recalled(key), heard);
    },
    onAdmitted: (key) => tally.admitted(key),
    onRefused: (key) => tally.refused(key),
  });
  const workers = Array.from(
    { length: count },
    (_, number) =>
      new HotWorker({
        time,
        server,
        terms,
        number,
        workers: count,
        hasLeases,
        random: random.fork(`worker ${number}`),
        onDecided: (decision) => tally.decided(decision),
      }),
  );
  startCalls(options, { time, workers, random: random.fork("calls") });
  time.runUntil(() => false, { untilMs: seconds * 1_000, steps: Infinity });
  const { scripts, busyMs, recalls } = server;
  const { calls, ...result } = tally.result();
  return {
    ...result,
    scriptsPerCall: scripts / calls,
    utilisation: busyMs / (seconds * 1_000),
    recalls,
  };
}

interface Stage {
  readonly time: VirtualTime;
  readonly workers: readonly HotWorker[];
  readonly random: Random;
}

/** Calls arrive at random, independent of each other, at any worker. */
function startCalls(options: HotKeyOptions, { time, workers, random }: Stage): void {
  const meanMs = 1_000 / options.callsPerSecond;
  const exponential = (mean: number): number => -mean * Math.log(1 - random.next());
  const arrive = (): void => {
    const key = random.chance(options.hotShare) ? hotKey : random.whole(1, options.keys - 1);
    random.pick(workers).call(key, exponential(meanRunMs));
    time.schedule(arrive, exponential(meanMs));
  };
  arrive();
}

class HotTally {
  readonly #time: VirtualTime;
  readonly #limit: number;
  readonly #admissions = new SlidingWorst(minuteMs);
  /** What a limit counts that knows which leased requests were used. */
  readonly #used = new SlidingSum(countedSlots, 0);
  readonly #waits: number[] = [];
  #hotCalls = 0;
  #hotAdmitted = 0;
  #hotLeased = 0;
  #refusedWithRoom = 0;
  #repeatedWithRoom = 0;

  constructor(time: VirtualTime, limit: number) {
    this.#time = time;
    this.#limit = limit;
  }

  /** At the time of the script, or of the decision under a lease. */
  admitted(key: number): void {
    if (key !== hotKey) return;
    this.#hotAdmitted += 1;
    this.#admissions.add(this.#time.now);
    this.#used.advance(slotAt(this.#time.now));
    this.#used.add(1);
  }

  refused(key: number): void {
    if (key === hotKey && this.#hasRoom) this.#refusedWithRoom += 1;
  }

  decided({ key, by, isAdmitted, waitedMs }: HotDecision): void {
    this.#waits.push(waitedMs);
    if (key !== hotKey) return;
    this.#hotCalls += 1;
    if (by === "memory" && this.#hasRoom) this.#repeatedWithRoom += 1;
    if (by !== "lease" || !isAdmitted) return;
    this.#hotLeased += 1;
    this.admitted(key);
  }

  result() {
    return {
      calls: this.#waits.length,
      hotCalls: this.#hotCalls,
      hotAdmitted: this.#hotAdmitted,
      hotLeased: this.#hotLeased,
      refusedWithRoom: this.#refusedWithRoom / this.#hotCalls,
      repeatedWithRoom: this.#repeatedWithRoom / this.#hotCalls,
      worst: this.#admissions.worst / this.#limit,
      waits: Float64Array.from(this.#waits).sort(),
    };
  }

  get #hasRoom(): boolean {
    this.#used.advance(slotAt(this.#time.now));
    return this.#used.sum < this.#limit;
  }
}
