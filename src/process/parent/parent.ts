import type { FailureFacts } from "../failure-facts.ts";
import type { Clock } from "../../domain/clock.ts";
import { wait } from "../../domain/waiting/wait.ts";
import { exitCodes, stopRequests } from "../program.ts";
import type {
  Beginning,
  Child,
  ChildEnd,
  ChildMessage,
  GatewaySettings,
  PassedSignal,
} from "./child.ts";

/** An unexpected end of a process. */
export interface Crash
  extends
    Pick<ChildEnd, "signal" | "peakResidentBytes">,
    Pick<Run, "number" | "restarts" | "hasServed" | "failure"> {
  readonly pid: number;
  readonly uptimeMs: number;
  /** Undefined when a signal ended it. */
  readonly exitCode: number | undefined;
  /** The wait before the next start; undefined: there is none. */
  readonly nextStartMs: number | undefined;
}

export interface ParentOptions {
  readonly clock: Clock;
  readonly start: (onMessage: (message: ChildMessage) => void) => Child;
  /** Called before the wait for the next start, like `onStartRefused`. */
  readonly onCrash: (crash: Crash) => void;
  /** The system refused to start a process, because its program or resources are missing. */
  readonly onStartRefused: (error: unknown, nextStartMs: number | undefined) => void;
  /** A signal was sent to a process, and has no effect there. */
  readonly onIgnored: (ignored: { readonly number: number; readonly signal: PassedSignal }) => void;
  /** Called once, when the first process serves. */
  readonly onServing: (settings: GatewaySettings) => void;
}

/** A number among the processes of the gateway, and the process that has it now, if any. */
interface Place {
  readonly number: number;
  run: Run | undefined;
  /** How often a process has been started again here after its end. */
  restarts: number;
}

/** The end of a process that was never started. */
const neverStarted: ChildEnd = {
  exitCode: exitCodes.failed,
  signal: undefined,
  peakResidentBytes: undefined,
};

class Run {
  /** Of the process among those of the gateway. */
  readonly number: number;
  /** Earlier restarts in its place. */
  readonly restarts: number;
  readonly startedAt: number;
  /** Undefined if it could not be started, for `refusal`. */
  child: Child | undefined;
  refusal: { readonly error: unknown } | undefined;
  ended = Promise.resolve(neverStarted);
  hasServed = false;
  /** Whether another process has taken its place. */
  isReplaced = false;
  /** What the process itself reported; undefined when it was killed. */
  failure: FailureFacts | undefined;
  settings: GatewaySettings | undefined;
  /** Why it ended before it served, as it said itself. */
  whyNotStarted: string | undefined;
  readonly serving = Promise.withResolvers<void>();
  readonly replaced = Promise.withResolvers<undefined>();

  constructor({ number, restarts }: Place, startedAt: number) {
    this.number = number;
    this.restarts = restarts;
    this.startedAt = startedAt;
  }
}

/** Time between the second request to stop and the kill. */
const killAfterMs = 500;
/** Longest time in which a new process loads the program and reads what it needs. */
const longestStartMs = 60_000;
export const firstRestartMs = 100;
export const longestRestartMs = 10_000;
/** A run of this length resets the wait before a restart. */
export const healthyUptimeMs = 60_000;
/** The parent gives up after signals have ended this many processes before any of them served. */
export const mostStartsUnserved = 5;
/** A terminal or init system may send these to the whole group, before a process handles them. */
const endSignals = ["SIGTERM", "SIGINT", "SIGHUP"];

/** Calls would end together with the simulated provider. */
export const whyNoDemo =
  "a demo cannot be replaced while it runs, as its simulated provider is in its process; stop it " +
  "and start it again";

/**
 * Keeps the gateway processes running: starts the first, which says how many there are to be, starts
 * those that crash again, forwards signals, and ends once they have ended.
 */
export class Parent {
  readonly #options: ParentOptions;
  readonly #isStopRequest: () => boolean;
  /** Cancels pending restarts. */
  readonly #ending = new AbortController();
  readonly #running = new Set<Child>();
  /** Those that have begun to serve, and have not ended. */
  readonly #serving = new Set<Run>();
  readonly #places: Place[] = [];
  #kept: Promise<void>[] = [];
  #settings: GatewaySettings | undefined;
  /** Arguments added to those of the command line. */
  #addresses: readonly string[] = [];
  #hasServed = false;
  #isForced = false;
  #hasHungUp = false;
  #exitCode: number = exitCodes.ok;
  #restarting: Promise<string | undefined> | undefined;

  constructor(options: ParentOptions) {
    this.#options = options;
    this.#isStopRequest = stopRequests(options.clock);
  }

  /** The settings that a process last read. */
  get settings(): GatewaySettings | undefined {
    return this.#settings;
  }

  /** Resolves to the exit code once every process has ended for good. */
  async run(): Promise<number> {
    this.#keepUpTo(1);
    while (this.#kept.length > 0) await Promise.all(this.#kept.splice(0));
    return this.#exitCode;
  }

  /**
   * Replaces the processes, one by one, by processes of the program that is on disk now. Resolves
   * once they serve, or to the reason why not; processes that are not replaced then continue.
   */
  restart(): Promise<string | undefined> {
    this.#restarting ??= this.#restart().finally(() => {
      this.#restarting = undefined;
    });
    return this.#restarting;
  }

  /** Forwards a signal of this process. A second request to stop ends all processes at once. */
  pass(signal: PassedSignal): void {
    if (signal === "SIGHUP") return this.#hangUp();
    if (!this.#isStopRequest()) return;
    const isEnding = this.#ending.signal.aborted;
    for (const child of this.#running) child.pass(signal);
    if (!isEnding) return this.#ending.abort();
    this.#isForced = true;
    this.#options.clock.schedule(() => {
      for (const child of this.#running) child.kill();
    }, killAfterMs);
  }

  /** Without a file to reload, SIGHUP means that the terminal of a demo was closed. */
  #hangUp(): void {
    if (this.#settings === undefined) this.#hasHungUp = true;
    else if (!this.#settings.isReloadable) this.#endOnce();
    else for (const child of this.#running) child.pass("SIGHUP");
  }

  #endOnce(): void {
    if (!this.#ending.signal.aborted) this.pass("SIGINT");
  }

  #keepUpTo(last: number): void {
    for (let number = this.#places.length + 1; number <= last; number += 1) {
      const place: Place = { number, run: undefined, restarts: 0 };
      this.#places.push(place);
      this.#kept.push(this.#keep(place));
    }
  }

  /** Runs one process after another in one place, until none is needed. */
  async #keep(place: Place): Promise<void> {
    const { clock } = this.#options;
    let nextWaitMs = firstRestartMs;
    while (!this.#ending.signal.aborted && this.#places.includes(place)) {
      const run = (place.run ??= this.#begin(
        place,
        this.#hasServed ? "another" : "first",
        this.#hasServed && place.restarts > 0 ? this.#settings?.dataDir : undefined,
      ));
      const end = await Promise.race([run.ended, run.replaced.promise]);
      // Another process has the place, or none is needed there.
      if (end === undefined) continue;
      place.run = undefined;
      const uptimeMs = clock.monotonic() - run.startedAt;
      if (uptimeMs >= healthyUptimeMs) nextWaitMs = firstRestartMs;
      const nextStartMs = this.#isFinal(run, end) ? undefined : nextWaitMs;
      this.#report(run, end, nextStartMs);
      if (nextStartMs === undefined) return this.#endWith(end);
      nextWaitMs = Math.min(longestRestartMs, nextWaitMs * 2);
      place.restarts += 1;
      await wait(nextStartMs, this.#ending.signal, clock);
    }
  }

  async #restart(): Promise<string | undefined> {
    if (!this.#hasServed) return "the gateway does not serve yet";
    if (this.#settings?.isReloadable === false) return whyNoDemo;
    const places = [...this.#places];
    for (const place of places) {
      if (this.#ending.signal.aborted) return whyEnding;
      // The first successor has read how many there are to be.
      const wanted = this.#settings?.processes ?? 1;
      if (place.number > wanted) this.#giveUp(place);
      else {
        const problem = await this.#replace(place);
        if (problem !== undefined) return problem;
      }
    }
    this.#keepUpTo(this.#settings?.processes ?? 1);
    return undefined;
  }

  /** A new process serves before the old one leaves. Resolves to the reason if none serves. */
  async #replace(place: Place): Promise<string | undefined> {
    const before = place.run;
    // What starts may serve, or be about to be started again.
    if (before !== undefined) await Promise.race([before.serving.promise, before.ended]);
    if (this.#ending.signal.aborted) return whyEnding;
    const next = this.#begin(place, before === undefined ? "another" : "successor");
    // The gateway ends only after it, also if it never serves.
    this.#kept.push(next.ended.then(() => undefined));
    const stopWaiting = this.#options.clock.schedule(() => {
      next.whyNotStarted ??= `it did not start within ${longestStartMs / 1000} s`;
      next.child?.kill();
    }, longestStartMs);
    const end = await Promise.race([next.serving.promise, next.ended]);
    stopWaiting();
    if (end !== undefined) return whyNotServing(next);
    const current = place.run;
    place.run = next;
    if (current !== undefined) this.#letGo(current);
    return undefined;
  }

  #giveUp(place: Place): void {
    this.#places.splice(this.#places.indexOf(place), 1);
    if (place.run !== undefined) this.#letGo(place.run);
  }

  /** Tells a process to leave; the gateway ends only after it. */
  #letGo(run: Run): void {
    run.isReplaced = true;
    run.child?.replaced();
    run.replaced.resolve(undefined);
    this.#kept.push(run.ended.then((end) => this.#report(run, end, undefined)));
  }

  /**
   * Whether no restart follows. A gateway that cannot start at all would otherwise fail forever.
   */
  #isFinal({ restarts }: Run, { signal }: ChildEnd): boolean {
    if (this.#ending.signal.aborted) return true;
    return !this.#hasServed && (signal === undefined || restarts + 1 >= mostStartsUnserved);
  }

  #report(run: Run, end: ChildEnd, nextStartMs: number | undefined): void {
    const { clock, onCrash, onStartRefused } = this.#options;
    if (run.refusal !== undefined) return onStartRefused(run.refusal.error, nextStartMs);
    if (!this.#isCrash(end) || (run.isReplaced && end.exitCode === exitCodes.ok)) return;
    const { number, restarts, hasServed, failure, startedAt } = run;
    const exitCode = end.signal === undefined ? end.exitCode : undefined;
    const uptimeMs = clock.monotonic() - startedAt;
    const pid = run.child?.pid ?? 0;
    onCrash({ number, pid, uptimeMs, ...end, exitCode, restarts, hasServed, failure, nextStartMs });
  }

  /** A process that was aborted, was asked to end, or never served is no crash. */
  #isCrash(end: ChildEnd): boolean {
    if (this.#isForced || this.#isAskedFor(end)) return false;
    return this.#hasServed || end.signal !== undefined;
  }

  #isAskedFor({ exitCode, signal }: ChildEnd): boolean {
    if (!this.#ending.signal.aborted || this.#isForced) return false;
    return signal === undefined ? exitCode === exitCodes.ok : endSignals.includes(signal);
  }

  /** The number of a signal is not an exit code of this program. */
  #endWith(end: ChildEnd): void {
    const ownCode = end.signal === undefined ? end.exitCode : exitCodes.failed;
    const exitCode = this.#isAskedFor(end) ? exitCodes.ok : ownCode;
    this.#exitCode = Math.max(this.#exitCode, exitCode);
    // No process may continue alone.
    this.#endOnce();
  }

  #begin(place: Place, portUse: Beginning["portUse"], crashedIn?: Beginning["crashedIn"]): Run {
    const run = new Run(place, this.#options.clock.monotonic());
    const { number } = place;
    try {
      const child = this.#options.start((message) => this.#hear(run, message));
      run.child = child;
      this.#running.add(child);
      run.ended = child.ended.then((end) => {
        this.#running.delete(child);
        this.#serving.delete(run);
        return end;
      });
      // After a crash of all, none serves, and each may listen before another looks.
      const own = [this.#settings, ...Array.from(this.#serving, ({ settings }) => settings)];
      const ownPorts = own.flatMap((settings) => settings?.ports ?? []);
      child.begin({ number, portUse, addresses: this.#addresses, ownPorts, crashedIn });
    } catch (error) {
      run.refusal = { error };
    }
    return run;
  }

  #hear(run: Run, message: ChildMessage): void {
    switch (message.kind) {
      case "settings":
        run.settings = message;
        // A successor that does not start changes nothing.
        if (!this.#hasServed) this.#settings = message;
        if (this.#hasHungUp && !message.isReloadable) this.#endOnce();
        return;
      case "started":
        run.hasServed = true;
        this.#serving.add(run);
        this.#settings = run.settings ?? this.#settings;
        run.serving.resolve();
        // If an option is given twice, the last one counts. A fixed address is not reported again.
        this.#addresses = [...this.#addresses, ...message.addresses];
        return this.#started();
      case "not-started":
        run.whyNotStarted = message.reason;
        return;
      case "failure":
        run.failure = message;
        return;
      case "ignored":
        return this.#options.onIgnored({ number: run.number, signal: message.signal });
    }
  }

  /** The first process decides the ports, which the others share. */
  #started(): void {
    if (this.#settings === undefined || this.#ending.signal.aborted) return;
    if (!this.#hasServed) this.#options.onServing(this.#settings);
    this.#hasServed = true;
    if (this.#restarting === undefined) this.#keepUpTo(this.#settings.processes);
  }
}

const whyEnding = "the gateway is ending";

function whyNotServing({ refusal, whyNotStarted }: Run): string {
  if (refusal !== undefined) return "no new process can be started";
  const reason = whyNotStarted === undefined ? "" : `: ${whyNotStarted}`;
  return `the new process ended before it served${reason}`;
}
