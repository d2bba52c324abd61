import type { Clock } from "../../domain/clock.ts";
import { wait } from "../../domain/waiting/wait.ts";
import { exitCodes } from "../exit-codes.ts";
import { StopSignals } from "../stop-signals.ts";
import { BackOff } from "./back-off.ts";
import type { Crash } from "./crash-report.ts";
import type { ChildMessage, GatewaySettings, PassedSignal, Role } from "./messages.ts";
import { Standby, type FetchLimit, type HearWorker, type StandbyLoss } from "./standby.ts";
import type { Worker, WorkerEnd, WorkerFailure } from "./worker.ts";

/** What follows the end of a process. */
export interface AfterEnd {
  readonly nextStartMs: number | undefined;
  /** Undefined while control has not read its configuration. */
  readonly settings: GatewaySettings | undefined;
}

export interface SupervisorOptions {
  readonly clock: Clock;
  readonly start: (fetchLimit: FetchLimit, onMessage: HearWorker) => Worker;
  /** Called before the wait for the next start, like `onStartRefused`. */
  readonly onCrash: (crash: Crash, after: AfterEnd) => void;
  /** The system refused to start a process: its program is missing, or resources are. */
  readonly onStartRefused: (error: unknown, after: AfterEnd) => void;
  readonly onStandbyLost: (loss: StandbyLoss, settings: GatewaySettings | undefined) => void;
}

/** Time between the second request to stop and the kill. */
const killAfterMs = 500;

/** The supervisor gives up after so many processes that a signal ended before any served. */
export const mostStartsUnserved = 5;

/** A terminal or init system may send these to the whole group, before a process handles them. */
const endSignals = ["SIGTERM", "SIGINT", "SIGHUP"];

/**
 * Keeps control and the workers running: restarts those that crash, forwards signals, and ends once
 * they have. Control starts first, says how many workers there are, and decides, with the first
 * worker, whether the gateway can start at all.
 */
export class Supervisor {
  readonly #options: SupervisorOptions;
  readonly #running = new Set<Worker>();
  /** Numbers of the workers that run. */
  readonly #workers = new Set<number>();
  /** Cancels pending restarts. */
  readonly #ending = new AbortController();
  #settings: GatewaySettings | undefined;
  readonly #standby: Standby;
  /** Limit that a worker asked for. */
  #fetchLimit: FetchLimit;
  /** Arguments added to those of the command line. */
  #addresses: readonly string[] = [];
  #hasWorkers = false;
  /** Whether a worker has served. */
  #hasServed = false;
  #isForced = false;
  #hasHungUp = false;
  #exitCode: number = exitCodes.ok;
  readonly #stopSignals: StopSignals;
  #kept: Promise<void>[] = [];

  constructor(options: SupervisorOptions) {
    this.#options = options;
    this.#stopSignals = new StopSignals(options.clock);
    const onLost = (loss: StandbyLoss): void => options.onStandbyLost(loss, this.#settings);
    this.#standby = new Standby({ ...options, onLost });
    this.#ending.signal.addEventListener("abort", () => this.#standby.end());
  }

  /** Resolves to the exit code once every process has ended for good. */
  async run(): Promise<number> {
    this.#kept.push(this.#keepOne({ kind: "control", workers: [] }));
    // The first worker loads its program while control opens the database.
    this.#standby.start(this.#fetchLimit);
    while (this.#kept.length > 0) await Promise.all(this.#kept.splice(0));
    return this.#exitCode;
  }

  /** Forwards a signal of this process. A second request to stop ends all processes at once. */
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

  /** Runs one process after another in one role, until none is wanted. */
  async #keepOne(role: Role): Promise<void> {
    const backOff = new BackOff();
    let restarts = 0;
    while (!this.#ending.signal.aborted) {
      const run = new ProcessRun(role, this.#options.clock.monotonic(), restarts);
      const end = await this.#runOne(run);
      if (run.wantsAgain) continue;
      const uptimeMs = this.#options.clock.monotonic() - run.startedAt;
      const nextStartMs = this.#isFinal(run, end) ? undefined : backOff.after(uptimeMs);
      this.#report(run, { ...end, uptimeMs, nextStartMs });
      if (nextStartMs === undefined) return this.#endWith(end);
      restarts += 1;
      await wait(nextStartMs, this.#ending.signal, this.#options.clock);
    }
  }

  /** Whether no restart follows. A gateway that cannot start at all would fail forever. */
  #isFinal({ restarts }: ProcessRun, { signal }: WorkerEnd): boolean {
    if (this.#ending.signal.aborted) return true;
    return !this.#hasServed && (signal === undefined || restarts + 1 >= mostStartsUnserved);
  }

  #report(run: ProcessRun, end: ReportedEnd): void {
    const { uptimeMs, nextStartMs, exitCode, signal, peakResidentBytes } = end;
    const after = { nextStartMs, settings: this.#settings };
    if (run.refusal !== undefined) return this.#options.onStartRefused(run.refusal.error, after);
    if (!this.#isCrash(end)) return;
    this.#options.onCrash(
      {
        at: this.#options.clock.now(),
        role: run.role.kind,
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

  /** Not a crash: a process that was cut short, was asked to end, or never served. */
  #isCrash(end: WorkerEnd): boolean {
    if (this.#isForced || this.#isAskedFor(end)) return false;
    return this.#hasServed || end.signal !== undefined;
  }

  #isAskedFor({ exitCode, signal }: WorkerEnd): boolean {
    if (!this.#ending.signal.aborted || this.#isForced) return false;
    return signal === undefined ? exitCode === exitCodes.ok : endSignals.includes(signal);
  }

  /** The number of a signal is not an exit code of this program. */
  #endWith(end: WorkerEnd): void {
    const ownCode = end.signal === undefined ? end.exitCode : exitCodes.failed;
    const exitCode = this.#isAskedFor(end) ? exitCodes.ok : ownCode;
    this.#exitCode = Math.max(this.#exitCode, exitCode);
    // No process goes on alone.
    this.#endOnce();
  }

  async #runOne(run: ProcessRun): Promise<WorkerEnd> {
    let worker: Worker;
    try {
      worker = this.#findProcess(run);
    } catch (error) {
      run.refusal = { error };
      return { exitCode: exitCodes.failed, signal: undefined, peakResidentBytes: undefined };
    }
    run.pid = worker.pid;
    this.#running.add(worker);
    const { role } = run;
    if (role.kind === "worker") this.#workers.add(role.number);
    const isControl = role.kind === "control";
    worker.begin({
      role: isControl ? { ...role, workers: [...this.#workers] } : role,
      addresses: this.#addresses,
    });
    const end = await worker.ended;
    this.#running.delete(worker);
    if (role.kind === "worker") this.#workers.delete(role.number);
    return end;
  }

  #findProcess(run: ProcessRun): Worker {
    const hear = (message: ChildMessage): void => this.#hear(run, message);
    // Control makes no calls of its own, so any limit of fetches suits it.
    const fetchLimit = run.role.kind === "control" ? "any" : this.#fetchLimit;
    return this.#standby.take(fetchLimit, hear) ?? this.#options.start(this.#fetchLimit, hear);
  }

  #hear(run: ProcessRun, message: ChildMessage): void {
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
        this.#started(run.role);
        return;
      case "failure":
        run.failure = message;
        return;
    }
  }

  #started({ kind }: Role): void {
    const { workers = 1, hasStandby = false } = this.#settings ?? {};
    if (kind === "control") {
      if (!this.#hasWorkers) this.#keepWorkers(1, 1);
      this.#hasWorkers = true;
    } else {
      // The first worker settles the port that the others share.
      if (!this.#hasServed) this.#keepWorkers(2, workers);
      this.#hasServed = true;
    }
    if (hasStandby && this.#hasServed) this.#standby.prepare(this.#fetchLimit);
  }

  #keepWorkers(first: number, last: number): void {
    const socket = this.#settings?.socket ?? "";
    for (let number = first; number <= last; number += 1) {
      this.#kept.push(this.#keepOne({ kind: "worker", number, socket }));
    }
  }
}

type ReportedEnd = WorkerEnd & {
  readonly uptimeMs: number;
  readonly nextStartMs: number | undefined;
};

/** State of one process while it runs. */
class ProcessRun {
  readonly role: Role;
  readonly startedAt: number;
  readonly restarts: number;
  pid = 0;
  wantsAgain = false;
  hasServed = false;
  failure: WorkerFailure | undefined;
  /** Why the process could not be started. */
  refusal: { readonly error: unknown } | undefined;

  constructor(role: Role, startedAt: number, restarts: number) {
    this.role = role;
    this.startedAt = startedAt;
    this.restarts = restarts;
  }
}
