import type { Clock } from "../../domain/clock.ts";
import { exitCodes } from "../exit-codes.ts";
import type { Crash } from "./crash-report.ts";
import { Heartbeat } from "./heartbeat.ts";
import type { Beginning, Role } from "./messages.ts";
import type { Worker, WorkerEnd, WorkerFailure } from "./worker.ts";

export interface RunPlan {
  readonly role: Role;
  readonly portUse: Beginning["portUse"];
  /** Earlier restarts in this place. */
  readonly restarts: number;
}

/** A role of the gateway and the process that has it; undefined between two processes. */
export interface Place {
  readonly role: Role;
  run: ProcessRun | undefined;
  /** How often a process has been replaced after its end. */
  restarts: number;
}

/** State of one process in a place of the gateway. */
export class ProcessRun {
  readonly role: Role;
  readonly portUse: Beginning["portUse"];
  readonly restarts: number;
  readonly startedAt: number;
  /** Undefined if it could not be started. */
  worker: Worker | undefined;
  /** Why it could not be started. */
  refusal: { readonly error: unknown } | undefined;
  ended: Promise<WorkerEnd>;
  hasEnded = false;
  hasServed = false;
  /** Whether another process has taken its place. */
  isReplaced = false;
  failure: WorkerFailure | undefined;
  /** Why it ended before it served, as it said itself. */
  whyNotStarted: string | undefined;
  heartbeat: Heartbeat | undefined;
  /** Resolve when it listens, and when it serves. */
  readonly listening = Promise.withResolvers<void>();
  readonly serving = Promise.withResolvers<void>();
  readonly replaced = Promise.withResolvers<undefined>();

  constructor({ role, portUse, restarts }: RunPlan, startedAt: number) {
    this.role = role;
    this.portUse = portUse;
    this.restarts = restarts;
    this.startedAt = startedAt;
    this.ended = Promise.resolve(neverStarted);
  }

  /** Resolves when it serves or has ended. */
  get settled(): Promise<WorkerEnd | void> {
    return Promise.race([this.serving.promise, this.ended]);
  }

  /** Ends the process when it no longer answers. */
  watch(clock: Pick<Clock, "schedule">, onSilent: () => void): void {
    this.heartbeat = new Heartbeat({
      clock,
      ask: () => this.worker?.tell("ping"),
      onSilent: () => {
        onSilent();
        this.worker?.kill();
      },
    });
    void this.ended.then(() => this.heartbeat?.stop());
  }

  /** The report of its end. */
  crash({ exitCode, signal, peakResidentBytes }: WorkerEnd, at: number, uptimeMs: number): Crash {
    return {
      at,
      role: this.role.kind,
      pid: this.worker?.pid ?? 0,
      uptimeMs,
      exitCode: signal === undefined ? exitCode : undefined,
      signal,
      peakResidentBytes,
      restarts: this.restarts,
      hasServed: this.hasServed,
      failure: this.failure,
    };
  }
}

/** The end of a process that was never started. */
const neverStarted: WorkerEnd = {
  exitCode: exitCodes.failed,
  signal: undefined,
  peakResidentBytes: undefined,
};
