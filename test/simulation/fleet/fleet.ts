import { SlidingSum } from "../../../src/domain/limits/sliding-sum.ts";
import { slotAt } from "../../../src/domain/limits/slots.ts";
import { Random } from "../random.ts";
import { VirtualTime } from "../virtual-time.ts";
import { FleetWindows } from "./fleet-windows.ts";
import { FleetWorker, type FleetDecision, type FleetTerms } from "./fleet-worker.ts";
import { SharedServer, type ServerFault } from "./shared-server.ts";

export interface FleetOptions {
  readonly seed: number;
  readonly workers: number;
  readonly keys: number;
  readonly callsPerSecond: number;
  /** Requests per minute of each key. */
  readonly limit: number;
  readonly seconds: number;
  readonly fault?: ServerFault;
  /** Whether all calls of a key reach the same worker. Otherwise any call may reach any worker. */
  readonly isSticky: boolean;
  readonly terms: FleetTerms;
}

export interface FleetResult {
  readonly admitted: number;
  readonly refused: number;
  /** Decided by a worker alone. */
  readonly local: number;
  /** Waits for decisions, sorted, in milliseconds. */
  readonly waits: Float64Array;
  /** Part of the time that the server spent on commands. */
  readonly utilisation: number;
  readonly longestQueue: number;
  /** Most requests of one key in any 60 seconds, by its limit. */
  readonly worst: number;
  /** From the end of the fault until no worker decides alone; undefined: not reached. */
  readonly recoveryMs: number | undefined;
}

const windowSlots = 60;
const meanRunMs = 2_000;
const lookMs = 100;

/** Runs a fleet of workers with one server that holds their limits. Equal seeds, equal results. */
export function runFleet(options: FleetOptions): FleetResult {
  const time = new VirtualTime();
  const random = new Random(options.seed);
  const counted = new FleetWindows();
  const { fault, workers: count, terms, seconds } = options;
  let epoch = 0;
  const server = new SharedServer({
    time,
    fault,
    onStateLost: () => {
      epoch += 1;
      counted.clear();
    },
  });
  const tally = new Tally(options, time);
  const shared = {
    time,
    server,
    counted,
    epoch: () => epoch,
    terms,
    workers: count,
    limitOf: () => options.limit,
    onDecided: (decision: FleetDecision) => tally.note(decision),
  };
  const workers = Array.from(
    { length: count },
    (_, number) => new FleetWorker(shared, number, random.fork(`worker ${number}`)),
  );
  startCalls(options, { time, workers, random: random.fork("calls") });
  const recoveryMs = watchRecovery(options, { time, workers });
  time.runUntil(() => false, { untilMs: seconds * 1_000, steps: Infinity });
  const { longestQueue, busyMs } = server;
  const utilisation = busyMs / (seconds * 1_000);
  return { ...tally.result(), utilisation, longestQueue, recoveryMs: recoveryMs() };
}

interface Stage {
  readonly time: VirtualTime;
  readonly workers: readonly FleetWorker[];
}

/** Calls arrive at random, independent of each other. */
function startCalls(options: FleetOptions, { time, workers, random }: Stage & { random: Random }) {
  const { callsPerSecond, keys, isSticky } = options;
  const meanMs = 1_000 / callsPerSecond;
  const exponential = (mean: number): number => -mean * Math.log(1 - random.next());
  const arrive = (): void => {
    const key = random.whole(0, keys - 1);
    const at = isSticky ? key % workers.length : random.whole(0, workers.length - 1);
    workers[at]?.call(key, exponential(meanRunMs));
    time.schedule(arrive, exponential(meanMs));
  };
  time.schedule(arrive, exponential(meanMs));
}

function watchRecovery(
  { fault }: FleetOptions,
  { time, workers }: Stage,
): () => number | undefined {
  if (fault === undefined || fault.kind === "flushed") return () => 0;
  const endMs = fault.untilMs;
  let recoveredAtMs: number | undefined;
  const look = (): void => {
    const isShared = workers.every(({ isAlone }) => !isAlone);
    // Breakers that open again count from the last time.
    recoveredAtMs = isShared ? (recoveredAtMs ?? time.now) : undefined;
    time.schedule(look, lookMs);
  };
  time.schedule(look, endMs);
  return () => (recoveredAtMs === undefined ? undefined : recoveredAtMs - endMs);
}

class Tally {
  readonly #options: FleetOptions;
  readonly #time: VirtualTime;
  readonly #windows: SlidingSum[];
  readonly #waits: number[] = [];
  #admitted = 0;
  #local = 0;
  #worst = 0;

  constructor(options: FleetOptions, time: VirtualTime) {
    this.#options = options;
    this.#time = time;
    this.#windows = Array.from({ length: options.keys }, () => new SlidingSum(windowSlots, 0));
  }

  note({ key, isAdmitted, isLocal, waitedMs }: FleetDecision): void {
    this.#waits.push(waitedMs);
    if (isLocal) this.#local += 1;
    if (!isAdmitted) return;
    this.#admitted += 1;
    const window = this.#windows[key];
    window?.advance(slotAt(this.#time.now));
    window?.add(1);
    this.#worst = Math.max(this.#worst, (window?.sum ?? 0) / this.#options.limit);
  }

  result() {
    const waits = Float64Array.from(this.#waits).sort();
    const refused = this.#waits.length - this.#admitted;
    return { admitted: this.#admitted, refused, local: this.#local, waits, worst: this.#worst };
  }
}
