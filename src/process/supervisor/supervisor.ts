import type { Clock } from "../../domain/clock.ts";
import { wait } from "../../domain/waiting/wait.ts";
import { exitCodes } from "../exit-codes.ts";
import { EndWishes } from "../end-wishes.ts";
import { BackOff } from "./back-off.ts";
import type { Crash } from "./crash-report.ts";
import type { PassedSignal, WorkerMessage, WorkerSettings } from "./messages.ts";
import { Standby, type FetchLimit, type HearWorker, type StandbyLoss } from "./standby.ts";
import type { Worker, WorkerEnd, WorkerFailure } from "./worker.ts";

/** What the next start waits for; undefined when none follows. */
export interface AfterEnd {
  readonly nextStartMs: number | undefined;
  /** Undefined when no worker has read its configuration yet. */
  readonly settings: WorkerSettings | undefined;
}

export interface SupervisorOptions {
  readonly clock: Clock;
  readonly start: (fetchLimit: FetchLimit, onMessage: HearWorker) => Worker;
  /** Told before the wait for the next start, as is the other. */
  readonly onCrash: (crash: Crash, after: AfterEnd) => void;
  /** The system would not start a worker: its program is gone, or there is no room for one. */
  readonly onStartRefused: (error: unknown, after: AfterEnd) => void;
  readonly onStandbyLost: (loss: StandbyLoss, settings: WorkerSettings | undefined) => void;
}

/** What is asked to end for the second time gets so long to do it. */
const patienceMs = 500;

/** Whoever is ended so often by a signal before anything was served will not serve. */
export const mostStartsUnserved = 5;

/** A terminal or an init system may send them to the whole group, before the worker can heed them. */
const endSignals = ["SIGTERM", "SIGINT", "SIGHUP"];

/**
 * Keeps workers running: starts again what ends unasked, passes signals on, and ends when they did.
 * The first worker says how many there are to be, and whether the gateway can start at all.
 */
export class Supervisor {
  readonly #options: SupervisorOptions;
  readonly #running = new Set<Worker>();
  /** Fires when a worker that waits for its next start need not be started any more. */
  readonly #ending = new AbortController();
  #settings: WorkerSettings | undefined;
  readonly #standby: Standby;
  /** What a worker asked for. */
  #fetchLimit: FetchLimit;
  /** Arguments behind those of the command line. */
  #addresses: readonly string[] = [];
  #hasServed = false;
  #isHurried = false;
  #hasHungUp = false;
  #exitCode: number = exitCodes.ok;
  readonly #wishes: EndWishes;
  #others: Promise<void>[] = [];

  constructor(options: SupervisorOptions) {
    this.#options = options;
    this.#wishes = new EndWishes(options.clock);
    const onLost = (loss: StandbyLoss): void => options.onStandbyLost(loss, this.#settings);
    this.#standby = new Standby({ ...options, onLost });
    this.#ending.signal.addEventListener("abort", () => this.#standby.end());
  }

  /** Resolves with the exit code once every worker has ended for good. */
  async run(): Promise<number> {
    await this.#keepOne();
    while (this.#others.length > 0) await Promise.all(this.#others.splice(0));
    return this.#exitCode;
  }

  /** What this process was sent. A second wish to end means at once. */
  pass(signal: PassedSignal): void {
    if (signal === "SIGHUP") return this.#hangUp();
    if (!this.#wishes.counts()) return;
    const isEnding = this.#ending.signal.aborted;
    for (const worker of this.#running) worker.pass(signal);
    if (!isEnding) return this.#ending.abort();
    this.#isHurried = true;
    this.#options.clock.schedule(() => {
      for (const worker of this.#running) worker.kill();
    }, patienceMs);
  }

  /** Without a file to read again, the terminal is gone, and with it the demo's reason to run. */
  #hangUp(): void {
    if (this.#settings === undefined) this.#hasHungUp = true;
    else if (!this.#settings.isReloadable) this.#endOnce();
    else for (const worker of this.#running) worker.pass("SIGHUP");
  }

  #endOnce(): void {
    if (!this.#ending.signal.aborted) this.pass("SIGINT");
  }

  /** One worker after the other in one place, until none is wanted. */
  async #keepOne(): Promise<void> {
    const backOff = new BackOff();
    let restarts = 0;
    while (!this.#ending.signal.aborted) {
      const run = new WorkerRun(this.#options.clock.monotonic(), restarts);
      const end = await this.#runWorker(run);
      if (run.wantsAgain) continue;
      const uptimeMs = this.#options.clock.monotonic() - run.startedAt;
      const nextStartMs = this.#isFinal(run, end) ? undefined : backOff.after(uptimeMs);
      this.#tell(run, { ...end, uptimeMs, nextStartMs });
      if (nextStartMs === undefined) return this.#noteExit(end);
      restarts += 1;
      await wait(nextStartMs, this.#ending.signal, this.#options.clock);
    }
  }

  /** Whether none is started after it. What cannot start at all would say why for ever. */
  #isFinal({ restarts }: WorkerRun, { signal }: WorkerEnd): boolean {
    if (this.#ending.signal.aborted) return true;
    return !this.#hasServed && (signal === undefined || restarts + 1 >= mostStartsUnserved);
  }

  #tell(run: WorkerRun, end: ToldEnd): void {
    const { uptimeMs, nextStartMs, exitCode, signal, peakResidentBytes } = end;
    const after = { nextStartMs, settings: this.#settings };
    if (run.refusal !== undefined) return this.#options.onStartRefused(run.refusal.error, after);
    if (!this.#isCrash(end)) return;
    this.#options.onCrash(
      {
        at: this.#options.clock.now(),
        pid: run.pid,
        uptimeMs,
        exitCode: signal === undefined ? exitCode : undefined,
        signal,
        peakResidentBytes,
        restarts: run.restarts,
        hasServed: run.hasServed,
        failure: run.failure,
      },
      after,
    );
  }

  /** Whoever is cut short may end as it likes; so may one that was asked to, or never served. */
  #isCrash(end: WorkerEnd): boolean {
    if (this.#isHurried || this.#isAskedFor(end)) return false;
    return this.#hasServed || end.signal !== undefined;
  }

  #isAskedFor({ exitCode, signal }: WorkerEnd): boolean {
    if (!this.#ending.signal.aborted || this.#isHurried) return false;
    return signal === undefined ? exitCode === exitCodes.ok : endSignals.includes(signal);
  }

  /** A signal's number is no exit code of this program. */
  #noteExit(end: WorkerEnd): void {
    const ownCode = end.signal === undefined ? end.exitCode : exitCodes.failed;
    const exitCode = this.#isAskedFor(end) ? exitCodes.ok : ownCode;
    this.#exitCode = Math.max(this.#exitCode, exitCode);
  }

  async #runWorker(run: WorkerRun): Promise<WorkerEnd> {
    let worker: Worker;
    try {
      worker = this.#findWorker((message) => this.#hear(run, message));
    } catch (error) {
      run.refusal = { error };
      return { exitCode: exitCodes.failed, signal: undefined, peakResidentBytes: undefined };
    }
    run.pid = worker.pid;
    this.#running.add(worker);
    worker.begin(this.#addresses);
    const end = await worker.ended;
    this.#running.delete(worker);
    return end;
  }

  #findWorker(hear: HearWorker): Worker {
    const standby = this.#standby.take(this.#fetchLimit, hear);
    return standby ?? this.#options.start(this.#fetchLimit, hear);
  }

  #hear(run: WorkerRun, message: WorkerMessage): void {
    switch (message.kind) {
      case "settings":
        this.#settings = message;
        if (this.#hasHungUp && !message.isReloadable) this.#endOnce();
        return;
      case "again":
        run.wantsAgain = true;
        this.#fetchLimit = message.fetchLimit;
        return;
      case "started":
        run.hasServed = true;
        // Of those that are given twice the last counts; what was given is not told again.
        this.#addresses = [...this.#addresses, ...message.addresses];
        if (!this.#hasServed) this.#startOthers();
        if (this.#settings?.hasStandby === true) this.#standby.prepare(this.#fetchLimit);
        return;
      case "failure":
        run.failure = message;
        return;
    }
  }

  #startOthers(): void {
    this.#hasServed = true;
    for (let more = (this.#settings?.workers ?? 1) - 1; more > 0; more -= 1) {
      this.#others.push(this.#keepOne());
    }
  }
}

type ToldEnd = WorkerEnd & {
  readonly uptimeMs: number;
  readonly nextStartMs: number | undefined;
};

/** What is known of one worker while it runs. */
class WorkerRun {
  readonly startedAt: number;
  readonly restarts: number;
  pid = 0;
  wantsAgain = false;
  hasServed = false;
  failure: WorkerFailure | undefined;
  /** Why there is no worker. */
  refusal: { readonly error: unknown } | undefined;

  constructor(startedAt: number, restarts: number) {
    this.startedAt = startedAt;
    this.restarts = restarts;
  }
}
