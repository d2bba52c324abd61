import type { Clock } from "../../domain/clock.ts";
import type { Target } from "../../domain/model.ts";
import type { EjectionSettings } from "../../domain/routing-settings.ts";
import type { TargetChange } from "./target-standing.ts";
import {
  TargetState,
  type AttemptTerms,
  type ObservedEnd,
  type ProbeResult,
} from "./target-state.ts";
import { unknownTarget, type TargetView } from "../target-view.ts";

export type { TargetView } from "../target-view.ts";

export interface EjectedTarget {
  readonly target: string;
  /** The key whose calls alone failed; undefined: ejected for all. */
  readonly key: string | undefined;
  readonly forMs: number;
  /** How often in a row. */
  readonly times: number;
  readonly because: string;
}

export interface ReturnedTarget {
  readonly target: string;
  /** Undefined: for all keys, but for those for which it is ejected alone. */
  readonly key: string | undefined;
}

export interface TargetHealthOptions {
  readonly clock: Clock;
  readonly settings: () => EjectionSettings;
  readonly onEjected: (event: EjectedTarget) => void;
  readonly onReturned: (event: ReturnedTarget) => void;
}

/** Told of one attempt by whoever makes it. It must be told of the end. */
export interface AttemptWatch {
  /** The first event of a stream came, or a whole answer. */
  answered(): void;
  /** `left`: the caller no longer wants the answer. Only the first end counts. */
  ended(outcome: ObservedEnd): void;
  /** How long the answer may take before it is overdue, milliseconds; Infinity if that is unknown. */
  readonly patienceMs: number;
  /** Runs something when the target is found to be silent and this attempt is overdue. */
  whenSilent(run: () => void): void;
}

/** Told of one probe. It must be told of the end. */
export interface ProbeWatch {
  /** How long the first event may take, milliseconds; Infinity where too little is known. */
  readonly patienceMs: number;
  ended(result: ProbeResult): void;
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
   * Undefined when the target takes no further attempt of the key now: it is ejected, paused, starts
   * slowly, or is at its concurrency limit. A target that has to serve is held to its limit alone.
   * What was sold is held to neither slow start nor limit.
   */
  tryBegin(target: Target, terms: AttemptTerms): AttemptWatch | undefined {
    const state = this.#stateOf(target.id);
    const { clock } = this.#options;
    const attempt = state.tryBegin(clock.monotonic(), terms);
    if (attempt === undefined) return undefined;
    let isUnderWay = true;
    return {
      answered: () => {
        if (!isUnderWay || attempt.isAnswered) return;
        this.#tell(target.id, state, state.answered(attempt, clock.monotonic()));
      },
      ended: (outcome) => {
        if (!isUnderWay) return;
        isUnderWay = false;
        this.#tell(target.id, state, state.ended(attempt, outcome, this.#moment()));
      },
      patienceMs: state.patienceMs(attempt),
      whenSilent: (run) => state.whenSilent(attempt, clock.monotonic(), run),
    };
  }

  /** Undefined while another probe of the target is under way. */
  tryBeginProbe(targetId: string): ProbeWatch | undefined {
    const state = this.#stateOf(targetId);
    if (!state.tryBeginProbe()) return undefined;
    return {
      patienceMs: state.probePatienceMs(this.#options.clock.monotonic()),
      ended: (result) => this.#tell(targetId, state, state.probeEnded(result, this.#moment())),
    };
  }

  /** What the calls of a key meet at a target now. */
  view(targetId: string, key: string): TargetView {
    return (
      this.#states.get(targetId)?.viewAt(this.#options.clock.monotonic(), key) ?? unknownTarget
    );
  }

  /** Forgets all other targets. Attempts at them end without a trace. */
  retain(ids: ReadonlySet<string>): void {
    this.#configured = ids;
    for (const id of this.#states.keys()) if (!ids.has(id)) this.#states.delete(id);
  }

  #moment() {
    const { clock, settings } = this.#options;
    return { nowMs: clock.monotonic(), settings: settings() };
  }

  #stateOf(id: string): TargetState {
    const known = this.#states.get(id);
    if (known !== undefined) return known;
    const state = new TargetState();
    // A call that began before a reload may still try a target that is gone by now.
    if (this.#configured === undefined || this.#configured.has(id)) this.#states.set(id, state);
    return state;
  }

  #tell(target: string, state: TargetState, changes: readonly TargetChange[]): void {
    if (this.#states.get(target) !== state) return;
    for (const { key, ejected } of changes) {
      if (ejected === undefined) this.#options.onReturned({ target, key });
      else this.#options.onEjected({ target, key, ...ejected });
    }
  }
}
