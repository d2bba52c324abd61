import { ManualTimers } from "./manual-timers.ts";
import { ManualClock } from "./manual-clock.ts";
import { steeredBy } from "./steered-valkey.ts";
import type { Clock } from "../../src/domain/clock.ts";
import {
  ValkeyUnavailable,
  type ValkeyConnection,
  type ValkeyScript,
} from "../../src/store/coordinator/valkey/connection/valkey-connection.ts";
import { SharedLimits } from "../../src/store/coordinator/valkey/limits/shared-limits.ts";
import { nextTurn } from "../../src/domain/waiting/wait.ts";

export const reservationTtlMs = 600_000;
/** All leases have ended by then. */
const leaseEndMs = 1_200;
const stepMs = 5;

type Connection = Pick<ValkeyConnection, "run">;

/** A script on its way to the server. */
export interface SentScript {
  readonly script: ValkeyScript;
  readonly keys: readonly [string, ...string[]];
  readonly parameters: readonly string[];
}

interface Message extends SentScript {
  readonly answer: (reply: unknown) => void;
  readonly fail: (error: unknown) => void;
}

/** What happens to a script: `late` means that the server runs it after the worker gave up. */
export type Fate = "answered" | "unsent" | "unanswered" | "late";

interface LimitsWorkerOptions {
  readonly number: number;
  readonly skewMs: number;
  readonly workers: number;
  readonly isLeasing: boolean;
  readonly timers: ManualTimers;
  readonly validSince: number;
}

/** A worker of a gateway, with a clock and a connection of its own. */
export class LimitsWorker {
  readonly limits: SharedLimits;
  readonly clock: Clock;
  readonly messages: Message[] = [];
  /** Scripts that the server has received and not run. */
  readonly late: SentScript[] = [];
  /** How many workers it believes to share the limits. */
  workers: number;
  isAlive = true;
  isCut = false;
  /** Since when the server remembers everything, as far as the worker has heard. */
  validSince: number;
  /** Hears that the leases of an account are in the way. */
  recall: (tag: string) => void = () => undefined;

  constructor(time: ManualClock, options: LimitsWorkerOptions) {
    const { number, skewMs, workers, isLeasing, timers } = options;
    this.workers = workers;
    this.validSince = options.validSince;
    let draws = 0;
    this.clock = {
      now: () => time.now(),
      monotonic: () => time.monotonic() + skewMs,
      schedule: (run, delayMs) => timers.schedule(run, delayMs),
    };
    this.limits = new SharedLimits({
      clock: this.clock,
      // The first draw names the process; waits have no jitter.
      random: () => (draws++ === 0 ? number / 1_000 : 0),
      reservationTtlMs,
      scopeLimit: 1_000,
      workers: () => this.workers,
      validSince: () => this.validSince,
      isLeasing,
      connection: {
        run: (...sent) => this.#send(...sent),
        subscribe: (_channel, listener) => {
          this.recall = listener;
          return () => undefined;
        },
      },
      onError(error) {
        throw error;
      },
    });
  }

  #send(...[script, keys, parameters]: Parameters<Connection["run"]>): Promise<unknown> {
    if (this.isCut) return Promise.reject(new ValkeyUnavailable("it is cut off"));
    return new Promise((answer, fail) => {
      this.messages.push({ script, keys, parameters, answer, fail });
    });
  }
}

export interface LimitsWorldOptions {
  readonly connection: Connection;
  readonly workers: number;
  /** Differences between the clocks of workers. */
  readonly skewMs: number;
  /** Runs after each script, in the order of the server. */
  readonly onRun: (sent: SentScript, reply: unknown) => void;
  /** Default: false, as each decision is then one of the server. */
  readonly isLeasing?: boolean;
}

/**
 * Workers that share limits in a real server, on virtual time. Scripts run only when they are
 * delivered, so that those of several workers interleave as a history says.
 */
export class LimitsWorld {
  readonly clock = new ManualClock({ monotonicMs: 1_000_000 });
  readonly workers: LimitsWorker[] = [];
  readonly #timers = new ManualTimers();
  readonly #server: Connection;
  readonly #options: LimitsWorldOptions;
  #started = 0;
  #validSince = 1;
  /** The server's clock may go back: another server has become the primary. */
  behindMs = 0;

  constructor(options: LimitsWorldOptions) {
    this.#options = options;
    const serverTime = { monotonic: () => this.now };
    this.#server = steeredBy(serverTime, options.connection);
    while (this.workers.length < options.workers) this.start();
    this.beat();
  }

  /** In the server's time. */
  get now(): number {
    return this.clock.monotonic() - this.behindMs;
  }

  /** Advances the time in small steps, as long as leases may end by it. */
  advance(durationMs: number): void {
    let left = durationMs;
    while (left > 0) {
      const step = durationMs - left < leaseEndMs ? Math.min(left, stepMs) : left;
      left -= step;
      this.clock.advance(step);
      this.#timers.advance(step);
    }
  }

  get living(): readonly LimitsWorker[] {
    return this.workers.filter(({ isAlive }) => isAlive);
  }

  at(index: number): LimitsWorker | undefined {
    return this.living[index % Math.max(1, this.living.length)];
  }

  /** A worker joins. It knows the others once it has asked the server. */
  start(): void {
    this.#started += 1;
    const number = this.#started;
    const { isLeasing = false } = this.#options;
    const skewMs = number * this.#options.skewMs;
    const workers = this.living.length + 1;
    const validSince = this.#validSince;
    const of = { number, skewMs, workers, isLeasing, timers: this.#timers, validSince };
    this.workers.push(new LimitsWorker(this.clock, of));
  }

  /** A worker ends as a crash would. What it has sent may have reached the server. */
  async crash(worker: LimitsWorker, reached: number): Promise<void> {
    const sent = worker.messages.splice(0).slice(0, reached);
    worker.isAlive = false;
    for (const message of sent) await this.#run(message);
  }

  /** All workers that reach the server hear how many there are. */
  beat(): void {
    for (const worker of this.living) if (!worker.isCut) worker.workers = this.living.length;
  }

  /** The server has started with older data, without what was on its way to it. */
  restarted(): void {
    this.#validSince = Math.max(this.now, this.#validSince + 1);
    for (const worker of this.living) {
      worker.late.length = 0;
      this.#failAll(worker);
      this.hear(worker);
    }
  }

  /** A worker that reaches the server hears whether it has lost its memory. */
  hear(worker: LimitsWorker): void {
    if (worker.isCut || worker.validSince === this.#validSince) return;
    worker.validSince = this.#validSince;
    worker.limits.restore();
  }

  cut(worker: LimitsWorker): void {
    worker.isCut = true;
    this.#failAll(worker);
  }

  #failAll(worker: LimitsWorker): void {
    for (const { fail } of worker.messages.splice(0)) fail(new ValkeyUnavailable("it was cut"));
  }

  /** The oldest script of a worker. False: there is none. */
  async deliver(worker: LimitsWorker, fate: Fate = "answered"): Promise<boolean> {
    const message = worker.messages.shift();
    if (message === undefined) return false;
    if (fate === "answered" || fate === "unanswered") await this.runLate(worker);
    if (fate === "late") worker.late.push(message);
    else if (fate !== "unsent") {
      const reply = await this.#run(message);
      if (fate === "answered") message.answer(reply);
    }
    if (fate !== "answered") message.fail(new ValkeyUnavailable("no answer"));
    await nextTurn();
    return true;
  }

  async runLate(worker: LimitsWorker): Promise<void> {
    for (const message of worker.late.splice(0)) await this.#run(message);
  }

  /** Delivers everything, also to those that wait for leases. `undecided`: of each open request. */
  async finish(undecided: ReadonlyMap<string, LimitsWorker>): Promise<void> {
    const isWaiting = (): boolean => [...undecided.values()].some(({ isAlive }) => isAlive);
    await this.settle();
    for (let times = 0; times < 40 && isWaiting(); times += 1) {
      this.advance(5);
      await this.settle();
    }
  }

  /** Delivers everything. */
  async settle(): Promise<void> {
    let isDone = false;
    while (!isDone) {
      isDone = true;
      await nextTurn();
      for (const worker of this.living) if (await this.deliver(worker)) isDone = false;
    }
  }

  /** What the server has published. */
  #recall(epochKey: string): void {
    const tag = epochKey.replace(/^.*\{(.*)\}.*$/, "$1");
    for (const worker of this.living) if (!worker.isCut) worker.recall(tag);
  }

  async #run(sent: SentScript): Promise<unknown> {
    const { script, keys, parameters } = sent;
    const reply = await this.#server.run(script, keys, parameters);
    this.#options.onRun(sent, reply);
    if (Array.isArray(reply) && reply[0] === 3 && reply[3] === 1) this.#recall(keys[0]);
    return reply;
  }
}
