import { countedSlots, slotMs } from "../../../src/domain/limits/slots.ts";
import type { Random } from "../random.ts";
import type { VirtualTime } from "../virtual-time.ts";
import { FleetWindows } from "./fleet-windows.ts";
import type { SharedServer } from "./shared-server.ts";

/** Times that commands take at the server, and waits, in milliseconds. */
export interface FleetTerms {
  readonly decisionMs: number;
  /** Execution of a report, for each of its keys, and how many keys a report may have. */
  readonly includeMs: number;
  readonly batch: number;
  readonly settleMs: number;
  /** Mean time on the network, one way. */
  readonly networkMs: number;
  readonly timeoutMs: number;
  /** Failures in a row that open the circuit breaker. */
  readonly failures: number;
  /** Between probes of an open breaker. */
  readonly probeMs: number;
  /** From the first answered probe until the server decides again. */
  readonly graceMs: number;
}

/** What all workers of a fleet share. */
export interface FleetShared {
  readonly time: VirtualTime;
  readonly server: SharedServer;
  /** The state of the server. */
  readonly counted: FleetWindows;
  /** Changes when the server has lost its state. */
  readonly epoch: () => number;
  readonly terms: FleetTerms;
  readonly workers: number;
  readonly limitOf: (key: number) => number;
  readonly onDecided: (decision: FleetDecision) => void;
}

export interface FleetDecision {
  readonly key: number;
  readonly isAdmitted: boolean;
  readonly isLocal: boolean;
  readonly waitedMs: number;
}

type Reply = "admitted" | "refused" | "lost";

/** What a worker knew about a key when it began to decide alone. */
interface KeyAtFlip {
  readonly sinceMs: number;
  /** Its own admissions, and its part of what was left. */
  readonly limit: number;
}

interface KnownTotal {
  readonly atMs: number;
  readonly total: number;
}

const windowMs = countedSlots * slotMs;

/**
 * A worker that asks the server about each call. After `failures` time-outs it decides alone,
 * within its part of each limit, until a probe is answered.
 */
export class FleetWorker {
  readonly #shared: FleetShared;
  readonly #random: Random;
  readonly #number: number;
  /** All that this worker has admitted. */
  readonly #shadow = new FleetWindows();
  /** What it has admitted alone and not yet reported. */
  readonly #unreported = new FleetWindows();
  /** The epoch of the server in which this worker last reported a key. */
  readonly #reported: (number | undefined)[] = [];
  /** What the server last said about the use of a key by all workers. */
  readonly #totals: (KnownTotal | undefined)[] = [];
  #flips: (KeyAtFlip | undefined)[] = [];
  #failures = 0;
  #lastArrivalMs = 0;
  #isAlone = false;

  constructor(shared: FleetShared, number: number, random: Random) {
    this.#shared = shared;
    this.#number = number;
    this.#random = random;
  }

  get isAlone(): boolean {
    return this.#isAlone;
  }

  /** Decides about a call, and settles it after a time. */
  call(key: number, runMs: number): void {
    const { time } = this.#shared;
    const beganMs = time.now;
    this.#decide(key, (isAdmitted, isLocal) => {
      this.#shared.onDecided({ key, isAdmitted, isLocal, waitedMs: time.now - beganMs });
      if (isAdmitted) time.schedule(() => this.#settle(), runMs);
    });
  }

  #decide(key: number, decided: (isAdmitted: boolean, isLocal: boolean) => void): void {
    if (this.#isAlone) {
      decided(this.#decideAlone(key), true);
      return;
    }
    // Commands of a worker arrive in order.
    if (this.#unreported.used(key, this.#shared.time.now) > 0) this.#report([key]);
    this.#ask(
      () => this.#countAt(key),
      (reply) => {
        if (reply === undefined) return decided(this.#decideAlone(key), true);
        if (reply === "lost") {
          if (!this.#isAlone) this.#reportAll();
          this.#goAlone();
          return this.#decide(key, decided);
        }
        if (reply === "admitted") this.#shadow.add(key, 1, this.#shared.time.now);
        const { counted, time } = this.#shared;
        const known = this.#totals[key];
        const total = counted.used(key, time.now);
        if (known === undefined || total >= known.total || time.now - known.atMs > windowMs) {
          this.#totals[key] = { atMs: time.now, total };
        }
        return decided(reply === "admitted", false);
      },
    );
  }

  /** Runs at the server. */
  #countAt(key: number): Reply {
    const { counted, epoch, limitOf, time } = this.#shared;
    const isNew = this.#shadow.used(key, time.now) === 0;
    if (this.#reported[key] !== epoch() && !isNew) return "lost";
    this.#reported[key] = epoch();
    const terms = { limit: limitOf(key), nowMs: time.now };
    return counted.take(key, 1, terms) === 1 ? "admitted" : "refused";
  }

  #decideAlone(key: number): boolean {
    const { time } = this.#shared;
    const limit = this.#limitAlone(key);
    const isAdmitted = this.#shadow.take(key, 1, { limit, nowMs: time.now }) === 1;
    if (isAdmitted) this.#unreported.add(key, 1, time.now);
    return isAdmitted;
  }

  /**
   * Two windows pass before the part counts alone: in the first one, admissions of before the flip
   * still count, in the second one, those that the first one allowed.
   */
  #limitAlone(key: number): number {
    const { limitOf, workers, time } = this.#shared;
    const part = partOf(limitOf(key), { workers, turn: this.#number + key });
    const { sinceMs, limit } = (this.#flips[key] ??= this.#atFlip(key, part));
    const ageMs = time.now - sinceMs;
    if (ageMs < windowMs) return limit;
    return ageMs < 2 * windowMs ? Math.min(limit, part) : part;
  }

  #atFlip(key: number, part: number): KeyAtFlip {
    const { limitOf, workers, time } = this.#shared;
    const known = this.#totals[key];
    const sinceMs = time.now;
    if (known === undefined || sinceMs - known.atMs > windowMs) return { sinceMs, limit: part };
    const left = Math.max(0, limitOf(key) - known.total);
    const own = this.#shadow.used(key, time.now);
    const ofLeft = partOf(left, { workers, turn: this.#number + key });
    return { sinceMs, limit: own + ofLeft };
  }

  #settle(): void {
    const { server, terms, time } = this.#shared;
    if (this.#isAlone) return;
    const command = { serviceMs: terms.settleMs, run: noop, fail: noop };
    time.schedule(() => server.arrive(command), this.#networkMs());
  }

  /** `answered` gets undefined when there is no reply in time. */
  #ask(
    execute: () => Reply,
    answered: (reply: Reply | undefined) => void,
    serviceMs = this.#shared.terms.decisionMs,
  ): void {
    const { server, terms, time } = this.#shared;
    let isOver = false;
    const end = (reply: Reply | undefined): void => {
      if (isOver) return;
      isOver = true;
      this.#note(reply !== undefined);
      answered(reply);
    };
    time.schedule(() => end(undefined), terms.timeoutMs);
    const run = (): void => {
      const reply = execute();
      time.schedule(() => end(reply), this.#networkMs());
    };
    const fail = (): void => end(undefined);
    this.#lastArrivalMs = Math.max(this.#lastArrivalMs, time.now + this.#networkMs());
    const delayMs = this.#lastArrivalMs - time.now;
    time.schedule(() => server.arrive({ serviceMs, run, fail }), delayMs);
  }

  #note(isAnswered: boolean): void {
    this.#failures = isAnswered ? 0 : this.#failures + 1;
    if (this.#isAlone || this.#failures < this.#shared.terms.failures) return;
    this.#goAlone();
    this.#probeLater();
  }

  #goAlone(): void {
    if (this.#isAlone) return;
    this.#isAlone = true;
    this.#totals.forEach((_, key) => this.#limitAlone(key));
  }

  #probeLater(): void {
    const { time, terms } = this.#shared;
    // Jitter, because all workers lose the server at once.
    const delayMs = terms.probeMs * (0.5 + this.#random.next());
    time.schedule(() => this.#probe(), delayMs);
  }

  #probe(): void {
    this.#ask(
      () => "admitted",
      (reply) => {
        if (reply === undefined) this.#probeLater();
        else this.#reportAll();
      },
    );
  }

  /** The server decides again once all workers have had the time to report. */
  #reportAll(): void {
    const { terms, time } = this.#shared;
    this.#reportMissing();
    time.schedule(() => {
      this.#reportMissing();
      this.#isAlone = false;
      this.#flips = [];
    }, terms.graceMs);
  }

  #reportMissing(): void {
    let batch: number[] = [];
    this.#totals.forEach((_, key) => {
      if (this.#isKnownAtServer(key)) return;
      batch.push(key);
      if (batch.length < this.#shared.terms.batch) return;
      this.#report(batch);
      batch = [];
    });
    if (batch.length > 0) this.#report(batch);
  }

  /** Whether the server has counted all that this worker has admitted. */
  #isKnownAtServer(key: number): boolean {
    const { epoch, time } = this.#shared;
    if (this.#unreported.used(key, time.now) > 0) return false;
    return this.#reported[key] === epoch() || this.#shadow.used(key, time.now) === 0;
  }

  #report(keys: readonly number[]): void {
    const { counted, epoch, terms, time } = this.#shared;
    this.#ask(
      () => {
        for (const key of keys) {
          const missing = this.#reported[key] === epoch() ? this.#unreported : this.#shadow;
          counted.add(key, missing.used(key, time.now), time.now);
          this.#unreported.forget(key);
          this.#reported[key] = epoch();
        }
        return "admitted";
      },
      noop,
      terms.decisionMs + terms.includeMs * keys.length,
    );
  }

  #networkMs(): number {
    return -this.#shared.terms.networkMs * Math.log(1 - this.#random.next());
  }
}

/** A worker's part of a limit. All parts together are the limit, even below one for each worker. */
export function partOf(
  limit: number,
  { workers, turn }: { readonly workers: number; readonly turn: number },
): number {
  const rest = limit % workers;
  return Math.floor(limit / workers) + (turn % workers < rest ? 1 : 0);
}

function noop(): void {}
