import type { Clock } from "../../domain/clock.ts";
import { wait } from "../../domain/waiting/wait.ts";
import { exitCodes } from "../exit-codes.ts";
import { StopSignals } from "../stop-signals.ts";
import { BackOff } from "./back-off.ts";
import type { Crash } from "./crash-report.ts";
import type { PassedSignal, WorkerMessage, WorkerSettings } from "./messages.ts";
import { Standby, type FetchLimit, type HearWorker, type StandbyLoss } from "./standby.ts";
import type { Worker, WorkerEnd, WorkerFailure } from "./worker.ts";

/** What follows the end of a worker. */
export interface AfterEnd {
  readonly nextStartMs: number | undefined;
  /** Undefined while no worker has read its configuration. */
  readonly settings: WorkerSettings | undefined;
}

export interface SupervisorOptions {
  readonly clock: Clock;
  readonly start: (fetchLimit: FetchLimit, onMessage: HearWorker) => Worker;
  /** Called before the wait for the next start, like `onStartRefused`. */
  readonly onCrash: (crash: Crash, after: AfterEnd) => void;
  /** The system refused to start a worker: its program is missing, or resources are. */
  readonly onStartRefused: (error: unknown, after: AfterEnd) => void;
  readonly onStandbyLost: (loss: StandbyLoss, settings: WorkerSettings | undefined) => void;
}

/** Time between the second request to stop and the kill. */
const killAfterMs = 500;

/** The supervisor gives up after so many workers that a signal ended before any served. */
export const mostStartsUnserved = 5;

/** A terminal or init system may send these to the whole group, before the worker handles them. */
const endSignals = ["SIGTERM", "SIGINT", "SIGHUP"];

/**
 * Keeps workers running: restarts those that crash, forwards signals, and ends once they have. The
 * first worker decides how many there are, and whether the gateway can start at all.
 */
export class Supervisor {
  readonly #options: SupervisorOptions;
  readonly #running = new Set<Worker>();
  /** Cancels pending restarts. */
  readonly #ending = new AbortController();
  #settings: WorkerSettings | undefined;
  readonly #standby: Standby;
  /** Limit that a worker asked for. */
  #fetchLimit: FetchLimit;
  /** Arguments added to those of the command line. */
  #addresses: readonly string[] = [];
  #hasServed = false;
  #isForced = false;
  #hasHungUp = false;
  #exitCode: number = exitCodes.ok;
  readonly #stopSignals: StopSignals;
  #others: Promise<void>[] = [];

  constructor(options: SupervisorOptions) {
    this.#options = options;
    this.#stopSignals = new StopSignals(options.clock);
    const onLost = (loss: StandbyLoss): void => options.onStandbyLost(loss, this.#settings);
    this.#standby = new Standby({ ...options, onLost });
    this.#ending.signal.addEventListener("abort", () => this.#standby.end());
  }

  /** Resolves to the exit code once every worker has ended for good. */
  async run(): Promise<number> {
    await this.#keepOne();
    while (this.#others.length > 0) await Promise.all(this.#others.splice(0));
    return this.#exitCode;
  }

  /** Forwards a signal of this process. A second request to stop ends the workers at once. */
  pass(signal: PassedSignal): void {
    if (signal === "SIGHUP") return this.#hangUp();
    if (!this.#stopSignals.counts()) return;
    const isEnding = this.#ending.signal.aborted;
    for (const worker of this.#running) worker.pass(signal);
    if (!isEnding) return this.#ending.abort();
    this.#isForced = true;
    this.#options.clock.schedule(() => {
      for (const worker of this.#running) worker.kill();
    }, killAfterMs);
  }

  /** Without a file to reload, SIGHUP means that the terminal of a demo is gone. */
  #hangUp(): void {
    if (this.#settings === undefined) this.#hasHungUp = true;
    else if (!this.#settings.isReloadable) this.#endOnce();
    else for (const worker of this.#running) worker.pass("SIGHUP");
  }

  #endOnce(): void {
    if (!this.#ending.signal.aborted) this.pass("SIGINT");
  }

  /** Runs one worker after another in one place, until none is wanted. */
  async #keepOne(): Promise<void> {
    const backOff = new BackOff();
    let restarts = 0;
    while (!this.#ending.signal.aborted) {
      const run = new WorkerRun(this.#options.clock.monotonic(), restarts);
      const end = await this.#runWorker(run);
      if (run.wantsAgain) continue;
      const uptimeMs = this.#options.clock.monotonic() - run.startedAt;
      const nextStartMs = this.#isFinal(run, end) ? undefined : backOff.after(uptimeMs);
      this.#report(run, { ...end, uptimeMs, nextStartMs });
      if (nextStartMs === undefined) return this.#noteExit(end);
      restarts += 1;
      await wait(nextStartMs, this.#ending.signal, this.#options.clock);
    }
  }

  /** Whether no restart follows. A gateway that cannot start at all would fail forever. */
  #isFinal({ restarts }: WorkerRun, { signal }: WorkerEnd): boolean {
    if (this.#ending.signal.aborted) return true;
    return !this.#hasServed && (signal === undefined || restarts + 1 >= mostStartsUnserved);
  }

  #report(run: WorkerRun, end: ReportedEnd): void {
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

  /** Not a crash: a worker that was cut short, was asked to end, or never served. */
  #isCrash(end: WorkerEnd): boolean {
    if (this.#isForced || this.#isAskedFor(end)) return false;
    return this.#hasServed || end.signal !== undefined;
  }

  #isAskedFor({ exitCode, signal }: WorkerEnd): boolean {
    if (!this.#ending.signal.aborted || this.#isForced) return false;
    return signal === undefined ? exitCode === exitCodes.ok : endSignals.includes(signal);
  }

  /** The number of a signal is not an exit code of this program. */
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
        // For options given twice the last one counts. A fixed address is not reported again.
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

type ReportedEnd = WorkerEnd & {
  readonly uptimeMs: number;
  readonly nextStartMs: number | undefined;
};

/** State of one worker while it runs. */
class WorkerRun {
  readonly startedAt: number;
  readonly restarts: number;
  pid = 0;
  wantsAgain = false;
  hasServed = false;
  failure: WorkerFailure | undefined;
  /** Why the worker could not be started. */
  refusal: { readonly error: unknown } | undefined;

  constructor(startedAt: number, restarts: number) {
    this.startedAt = startedAt;
    this.restarts = restarts;
  }
}
