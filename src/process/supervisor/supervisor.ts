import { wait } from "../../domain/waiting/wait.ts";
import { exitCodes } from "../exit-codes.ts";
import { StopSignals } from "../stop-signals.ts";
import { BackOff } from "./back-off.ts";
import type { ChildMessage, GatewaySettings, PassedSignal, Role } from "./messages.ts";
import { ProcessRun, type Place, type RunPlan } from "./process-run.ts";
import { Replacement, whyNoDemo } from "./replacement.ts";
import { Standby, type StandbyLoss } from "./standby.ts";
import type { SupervisorOptions } from "./supervisor-options.ts";
import type { Worker, WorkerEnd } from "./worker.ts";

/** Time between the second request to stop and the kill. */
const killAfterMs = 500;

/**
 * The supervisor gives up after signals have ended this many processes before any of them served.
 */
export const mostStartsUnserved = 5;

/** A terminal or init system may send these to the whole group, before a process handles them. */
const endSignals = ["SIGTERM", "SIGINT", "SIGHUP"];

/**
 * Keeps control and the workers running: restarts those that crash, forwards signals, and ends once
 * they have ended. Control starts first and reports the number of workers; it decides, together
 * with the first worker, whether the gateway can start at all.
 */
export class Supervisor {
  readonly #options: SupervisorOptions;
  readonly #running = new Set<Worker>();
  /** Cancels pending restarts. */
  readonly #ending = new AbortController();
  #settings: GatewaySettings | undefined;
  readonly #standby: Standby;
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
  readonly #places: Place[] = [];
  readonly #replacement: Replacement;
  #restarting: Promise<string | undefined> | undefined;

  constructor(options: SupervisorOptions) {
    this.#options = options;
    this.#stopSignals = new StopSignals(options.clock);
    const onLost = (loss: StandbyLoss): void => options.onStandbyLost(loss, this.#settings);
    this.#standby = new Standby({ ...options, onLost });
    this.#replacement = new Replacement({
      clock: options.clock,
      ending: this.#ending.signal,
      begin: (plan) => this.#begin(plan),
      onEnded: (run, end) => this.#report(run, end, undefined),
      awaitAtEnd: (left) => void this.#kept.push(left),
    });
    this.#ending.signal.addEventListener("abort", () => this.#standby.end());
  }

  /** The settings that control last read. */
  get settings(): GatewaySettings | undefined {
    return this.#settings;
  }

  /** Resolves to the exit code once every process has ended for good. */
  async run(): Promise<number> {
    this.#keep({ kind: "control" });
    // The first worker loads its program while control opens the database.
    this.#standby.start();
    while (this.#kept.length > 0) await Promise.all(this.#kept.splice(0));
    return this.#exitCode;
  }

  /**
   * Replaces control and the workers, one by one, by processes of the program that is on disk now.
   * Resolves once they serve, or to the reason why not; processes that are not replaced then
   * continue.
   */
  restart(): Promise<string | undefined> {
    this.#restarting ??= this.#restart().finally(() => {
      this.#restarting = undefined;
      this.#prepareStandby();
    });
    return this.#restarting;
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

  /** Without a file to reload, SIGHUP means that the terminal of a demo was closed. */
  #hangUp(): void {
    if (this.#settings === undefined) this.#hasHungUp = true;
    else if (!this.#settings.isReloadable) this.#endOnce();
    else for (const worker of this.#running) worker.pass("SIGHUP");
  }

  #endOnce(): void {
    if (!this.#ending.signal.aborted) this.pass("SIGINT");
  }

  #keep(role: Role): void {
    const place: Place = { role, run: undefined, restarts: 0 };
    this.#places.push(place);
    this.#kept.push(this.#keepOne(place));
  }

  /** Runs one process after another in one place, until none is needed. */
  async #keepOne(place: Place): Promise<void> {
    const { role } = place;
    const backOff = new BackOff();
    while (!this.#ending.signal.aborted && this.#places.includes(place)) {
      const { restarts } = place;
      const run = (place.run ??= this.#begin({ role, portUse: this.#portUseOf(role), restarts }));
      const end = await Promise.race([run.ended, run.replaced.promise]);
      // Another process has the place, or none is needed there.
      if (end === undefined) continue;
      place.run = undefined;
      const nextStartMs = this.#isFinal(run, end) ? undefined : backOff.after(this.#uptimeOf(run));
      this.#report(run, end, nextStartMs);
      if (nextStartMs === undefined) return this.#endWith(end);
      place.restarts += 1;
      await wait(nextStartMs, this.#ending.signal, this.#options.clock);
    }
  }

  async #restart(): Promise<string | undefined> {
    if (!this.#hasServed) return "the gateway does not serve yet";
    if (this.#settings?.isReloadable === false) return whyNoDemo;
    this.#standby.discard();
    // A worker that is starting needs control.
    await Promise.all(this.#places.flatMap(({ run }) => (run === undefined ? [] : [run.settled])));
    for (const place of this.#places) {
      if (this.#ending.signal.aborted) return "the gateway is ending";
      const problem = this.#isWanted(place) ? await this.#replacement.replace(place) : undefined;
      if (problem !== undefined) return problem;
    }
    for (const place of this.#places.filter((one) => !this.#isWanted(one))) this.#giveUp(place);
    this.#keepWorkers(this.#places.length, this.#settings?.workers ?? 1);
    return undefined;
  }

  /** Control has read the number of workers before they are replaced. */
  #isWanted({ role }: Place): boolean {
    return role.kind === "control" || role.number <= (this.#settings?.workers ?? 1);
  }

  #giveUp(place: Place): void {
    this.#places.splice(this.#places.indexOf(place), 1);
    if (place.run !== undefined) void this.#replacement.letGo(place.run);
  }

  /**
   * Whether no restart follows. A gateway that cannot start at all would otherwise fail forever.
   */
  #isFinal({ restarts }: ProcessRun, { signal }: WorkerEnd): boolean {
    if (this.#ending.signal.aborted) return true;
    return !this.#hasServed && (signal === undefined || restarts + 1 >= mostStartsUnserved);
  }

  #report(run: ProcessRun, end: WorkerEnd, nextStartMs: number | undefined): void {
    const after = { nextStartMs, settings: this.#settings };
    if (run.refusal !== undefined) return this.#options.onStartRefused(run.refusal.error, after);
    if (!this.#isCrash(end) || (run.isReplaced && end.exitCode === exitCodes.ok)) return;
    const crash = run.crash(end, this.#options.clock.now(), this.#uptimeOf(run));
    this.#options.onCrash(crash, after);
  }

  #uptimeOf({ startedAt }: ProcessRun): number {
    return this.#options.clock.monotonic() - startedAt;
  }

  /** A process that was aborted, was asked to end, or never served is no crash. */
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
    // No process may continue alone.
    this.#endOnce();
  }

  /** Whether no process of this gateway has listened yet where the role listens. */
  #portUseOf(role: Role): ProcessRun["portUse"] {
    const isFirst =
      role.kind === "control" ? !this.#hasWorkers : role.number === 1 && !this.#hasServed;
    return isFirst ? "first" : "another";
  }

  #begin(plan: RunPlan): ProcessRun {
    const run = new ProcessRun(plan, this.#options.clock.monotonic());
    try {
      const worker = (run.worker = this.#findProcess(run));
      this.#running.add(worker);
      run.ended = worker.ended.then((end) => {
        this.#running.delete(worker);
        run.hasEnded = true;
        return end;
      });
      const { portUse } = run;
      worker.begin({ role: run.role, portUse, addresses: this.#addresses });
    } catch (error) {
      run.refusal = { error };
    }
    return run;
  }

  #findProcess(run: ProcessRun): Worker {
    const hear = (message: ChildMessage): void => this.#hear(run, message);
    return this.#standby.take(hear) ?? this.#options.start(hear);
  }

  #hear(run: ProcessRun, message: ChildMessage): void {
    switch (message.kind) {
      case "settings":
        this.#settings = message;
        if (this.#hasHungUp && !message.isReloadable) this.#endOnce();
        return;
      case "waiting":
        return run.listening.resolve();
      case "started":
        run.hasServed = true;
        run.listening.resolve();
        run.serving.resolve();
        // If an option is given twice, the last one counts. A fixed address is not reported again.
        this.#addresses = [...this.#addresses, ...message.addresses];
        this.#started(run);
        return;
      case "pong":
        return run.heartbeat?.answered();
      case "not-started":
        run.whyNotStarted = message.reason;
        return;
      case "failure":
        run.failure = message;
        return;
    }
  }

  #started(run: ProcessRun): void {
    const { workers = 1 } = this.#settings ?? {};
    const { kind } = run.role;
    // Calls continue without control, but not while control is connected and makes no decisions;
    // and the system goes on to give connections to a worker that hangs.
    if (run.heartbeat === undefined) {
      run.watch(this.#options.clock, () => this.#options.onSilent(kind, this.#settings));
    }
    if (kind === "control") {
      if (!this.#hasWorkers) this.#keepWorkers(1, 1);
      this.#hasWorkers = true;
    } else {
      // The first worker decides the port, which the others share.
      if (!this.#hasServed) this.#keepWorkers(2, workers);
      if (!this.#hasServed && this.#settings) this.#options.onServing(this.#settings);
      this.#hasServed = true;
    }
    this.#prepareStandby();
  }

  /** Not while processes are being replaced, because that needs the processor. */
  #prepareStandby(): void {
    const { hasStandby = false } = this.#settings ?? {};
    if (!hasStandby || !this.#hasServed || this.#restarting !== undefined) return;
    this.#standby.prepare();
  }

  #keepWorkers(first: number, last: number): void {
    const socket = this.#settings?.socket ?? "";
    for (let number = first; number <= last; number += 1) {
      this.#keep({ kind: "worker", number, socket });
    }
  }
}
