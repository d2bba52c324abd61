import type { Clock } from "../../domain/clock.ts";
import type { Target } from "../../domain/model.ts";
import type { EjectionSettings } from "../../domain/routing-settings.ts";
import type { UpstreamFailureDetails } from "../../domain/upstream-failure.ts";
import { TargetState, type AttemptTerms, type TargetChange } from "./target-state.ts";
import { unknownTarget, type TargetView } from "./target-view.ts";

export type { TargetView } from "./target-view.ts";

export interface EjectedTarget {
  readonly target: string;
  readonly forMs: number;
  /** How often in a row. */
  readonly times: number;
  readonly because: string;
}

export interface TargetHealthOptions {
  readonly clock: Clock;
  readonly settings: () => EjectionSettings;
  readonly onEjected: (event: EjectedTarget) => void;
  readonly onReturned: (target: string) => void;
}

/** Told of one attempt by whoever makes it. It must be told of the end. */
export interface AttemptWatch {
  /** The first event came, so long after the attempt began. */
  answered(firstEventMs: number): void;
  /** `left`: the caller no longer wants the answer. Only the first end counts. */
  ended(outcome: "ok" | "left" | UpstreamFailureDetails): void;
}

/**
 * What attempts tell of their targets, for all calls of the process: targets that keep failing are
 * ejected for a time, and each gets as many attempts at once as it can do. It outlives reloads of
 * the configuration.
 */
export class TargetHealth {
  readonly #options: TargetHealthOptions;
  readonly #states = new Map<string, TargetState>();
  /** Undefined: not told yet, all are taken for configured. */
  #configured: ReadonlySet<string> | undefined;

  constructor(options: TargetHealthOptions) {
    this.#options = options;
  }

  /**
   * Undefined when the target takes no further attempt now: its adaptive limit is reached, or it is
   * half open and the one call that tries it is under way. That second bound does not hold for a
   * target that has to serve (`Candidate.hasToServe`), and neither holds for what was sold.
   */
  tryBegin(target: Target, terms: AttemptTerms = {}): AttemptWatch | undefined {
    const state = this.#stateOf(target.id);
    const { clock } = this.#options;
    const attempt = state.tryBegin(clock.monotonic(), terms);
    if (attempt === undefined) return undefined;
    let isUnderWay = true;
    return {
      answered: (firstEventMs) => {
        if (!isUnderWay || attempt.isAnswered) return;
        const change = state.answered(attempt, clock.monotonic(), firstEventMs);
        this.#tell(target.id, state, change);
      },
      ended: (outcome) => {
        if (!isUnderWay) return;
        isUnderWay = false;
        const nowMs = clock.monotonic();
        const settings = this.#options.settings();
        this.#tell(target.id, state, state.ended(attempt, outcome, { nowMs, settings }));
      },
    };
  }

  view(targetId: string): TargetView {
    return this.#states.get(targetId)?.viewAt(this.#options.clock.monotonic()) ?? unknownTarget;
  }

  /** Forgets all other targets. Attempts at them end without a trace. */
  retain(ids: ReadonlySet<string>): void {
    this.#configured = ids;
    for (const id of this.#states.keys()) if (!ids.has(id)) this.#states.delete(id);
  }

  #stateOf(id: string): TargetState {
    const known = this.#states.get(id);
    if (known !== undefined) return known;
    const state = new TargetState();
    // A call that began before a reload may still try a target that is gone by now.
    if (this.#configured === undefined || this.#configured.has(id)) this.#states.set(id, state);
    return state;
  }

  #tell(target: string, state: TargetState, change: TargetChange): void {
    if (change === undefined || this.#states.get(target) !== state) return;
    if (change === "returned") this.#options.onReturned(target);
    else this.#options.onEjected({ target, ...change.ejected });
  }
}
