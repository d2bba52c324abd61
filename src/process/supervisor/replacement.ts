import type { Clock } from "../../domain/clock.ts";
import type { Place, ProcessRun, RunPlan } from "./process-run.ts";
import type { WorkerEnd } from "./worker.ts";

export interface ReplacementOptions {
  readonly clock: Clock;
  /** Aborts when the gateway is ending. */
  readonly ending: AbortSignal;
  readonly begin: (plan: RunPlan) => ProcessRun;
  /** Called when a process that was replaced has ended. */
  readonly onEnded: (run: ProcessRun, end: WorkerEnd) => void;
  /** The gateway ends only after this. */
  readonly awaitAtEnd: (left: Promise<void>) => void;
}

/** Longest time in which a new process loads the program and reads what it needs. */
const longestStartMs = 60_000;
/** Longest time for control to release the data directory, for which its successor waits. */
const longestHandOverMs = 10_000;

/** Calls would end together with the simulated provider. */
export const whyNoDemo =
  "a demo cannot be replaced while it runs, as its simulated provider is in one of its processes; " +
  "stop it and start it again";

/** Replaces a serving process by another one. */
export class Replacement {
  readonly #options: ReplacementOptions;
  /** Processes that were replaced and have not ended yet. */
  readonly leaving = new Set<ProcessRun>();

  constructor(options: ReplacementOptions) {
    this.#options = options;
  }

  /**
   * A new worker serves before the old one leaves. Of control there can be only one: the new one
   * listens, and lets requests wait until the old one has ended. Resolves to the reason if none
   * serves.
   */
  async replace(place: Place): Promise<string | undefined> {
    const { run: before, role } = place;
    if (before === undefined) return this.#fill(place);
    const next = await this.#beginNext(before);
    if (next.hasEnded || next.worker === undefined) return whyNoneStarts(next);
    if (place.run !== before) {
      next.worker.kill();
      return undefined;
    }
    place.run = next;
    const left = this.letGo(before);
    if (role.kind === "control") {
      const stopWaiting = this.#options.clock.schedule(
        () => before.worker?.kill(),
        longestHandOverMs,
      );
      await left;
      stopWaiting();
      next.worker.tell("take-over");
    }
    const end = await next.settled;
    if (end === undefined) return undefined;
    return withReason(`the new ${role.kind} process ended before it served`, next);
  }

  /** Starts a process now where the last one has ended and the next one would start later. */
  async #fill(place: Place): Promise<string | undefined> {
    const { role, restarts } = place;
    const run = this.#options.begin({ role, portUse: "another", restarts });
    place.run = run;
    await this.#inTime(run, run.settled);
    return run.hasServed ? undefined : whyNoneStarts(run);
  }

  /** Tells a process to leave. Resolves when it has ended. */
  letGo(run: ProcessRun): Promise<void> {
    run.isReplaced = true;
    run.replaced.resolve(undefined);
    run.worker?.tell("replaced");
    this.leaving.add(run);
    const left = run.ended.then((end) => {
      this.leaving.delete(run);
      this.#options.onEnded(run, end);
    });
    this.#options.awaitAtEnd(left);
    return left;
  }

  /** Resolves when it listens or has ended. */
  async #beginNext({ role, restarts }: ProcessRun): Promise<ProcessRun> {
    const next = this.#options.begin({ role, portUse: "successor", restarts });
    await this.#inTime(next, Promise.race([next.listening.promise, next.ended]));
    return next;
  }

  /** Kills the process if it takes too long. */
  async #inTime(run: ProcessRun, started: Promise<unknown>): Promise<void> {
    const kill = (): void => {
      run.whyNotStarted ??= `it did not start within ${longestStartMs / 1000} s`;
      run.worker?.kill();
    };
    const stopWaiting = this.#options.clock.schedule(kill, longestStartMs);
    await started;
    stopWaiting();
  }
}

function whyNoneStarts(run: ProcessRun): string {
  return withReason(`no new ${run.role.kind} process starts`, run);
}

function withReason(what: string, { whyNotStarted }: ProcessRun): string {
  return whyNotStarted === undefined
    ? `${what}; the log of the gateway may have the reason`
    : `${what}: ${whyNotStarted}`;
}
