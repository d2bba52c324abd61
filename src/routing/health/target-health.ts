import type { Clock } from "../../domain/clock.ts";
import type { TargetFacts } from "../../domain/live-facts.ts";
import type { Target, TargetOut } from "../../domain/model.ts";
import type { OutSettings } from "../../domain/settings.ts";
import { ConcurrencyLimit } from "./concurrency-limit.ts";
import {
  type AttemptTerms,
  type ObservedEnd,
  type ProbeResult,
  type TargetChange,
  TargetState,
  type WatchedAttempt,
} from "./target-state.ts";
import { type TargetView, unknownTarget } from "../target-view.ts";

export type { TargetView } from "../target-view.ts";

export interface ReturnedTarget {
  readonly target: string;
  /** Undefined: for all keys, except those for which it is out alone. */
  readonly key: string | undefined;
}

export interface TargetHealthOptions {
  readonly clock: Clock;
  readonly settings: () => OutSettings;
  readonly onOut: (event: TargetOut) => void;
  readonly onReturned: (event: ReturnedTarget) => void;
}

/** Reports one attempt. `ended` must be called. */
export interface AttemptWatch {
  /** The first event of a stream, or a whole answer, arrived. */
  answered(): void;
  /** Only the first call counts. */
  ended(outcome: ObservedEnd): void;
  /** Time in milliseconds after which the answer is overdue; Infinity if unknown. */
  readonly overdueAfterMs: number;
}

/** Reports one probe. `ended` must be called. */
export interface ProbeWatch {
  /** Timeout of the first event in milliseconds; Infinity if unknown. */
  readonly timeoutMs: number;
  ended(result: ProbeResult): void;
}

/**
 * Health of all targets, learned from the attempts of all calls: which are out until a time, and
 * how many attempts each takes at once. It outlives reloads of the configuration.
 */
export class TargetHealth {
  readonly #options: TargetHealthOptions;
  readonly #states = new Map<string, TargetState>();
  /** Undefined: not set yet, every target counts as configured. */
  #configured: ReadonlySet<string> | undefined;

  constructor(options: TargetHealthOptions) {
    this.#options = options;
  }

  /**
   * Undefined when the target is out for the key. With `hasToServe` it takes any attempt.
   */
  tryBegin(target: Target, terms: AttemptTerms): AttemptWatch | undefined {
    const state = this.#stateOf(target.id);
    const attempt = state.tryBegin(this.#options.clock.monotonic(), terms);
    return attempt && new TargetWatch(this, { id: target.id, state, attempt });
  }

  /** Use it by way of an `AttemptWatch`. */
  answered({ id, state, attempt }: Watched): void {
    this.#notify(id, state, state.answered(attempt, this.#options.clock.monotonic()));
  }

  /** As `answered`. */
  ended({ id, state, attempt }: Watched, outcome: ObservedEnd): void {
    const kind = typeof outcome === "string" ? outcome : outcome.kind;
    state.counts.ended(kind, this.#options.clock.now());
    this.#notify(id, state, state.ended(attempt, outcome, this.#moment()));
  }

  /** The places of a target; one is taken before an attempt begins. */
  limitOf(targetId: string): ConcurrencyLimit {
    return this.#stateOf(targetId).limit;
  }

  /** Attempts under way at a target. */
  inFlightOf(targetId: string): number {
    return this.#states.get(targetId)?.limit.inFlight ?? 0;
  }

  /** Undefined while another probe of the target is running. */
  tryBeginProbe(targetId: string): ProbeWatch | undefined {
    const state = this.#stateOf(targetId);
    if (!state.tryBeginProbe()) return undefined;
    return {
      timeoutMs: state.probeTimeoutMs(this.#options.clock.monotonic()),
      ended: (result) => this.#notify(targetId, state, state.probeEnded(result, this.#moment())),
    };
  }

  view(targetId: string, key: string): TargetView {
    return (
      this.#states.get(targetId)?.viewAt(this.#options.clock.monotonic(), key) ?? unknownTarget
    );
  }

  /** Of the targets that attempts have reached. */
  facts(): readonly TargetFacts[] {
    const { clock } = this.#options;
    const [nowMs, now] = [clock.monotonic(), clock.now()];
    return Array.from(this.#states, ([id, state]) => state.factsAt(id, { nowMs, now }));
  }

  /** Forgets all other targets. Running attempts at them have no effect. */
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
    const state = new TargetState(new ConcurrencyLimit());
    // A call from before a reload may still use a removed target.
    if (this.#configured === undefined || this.#configured.has(id)) this.#states.set(id, state);
    return state;
  }

  #notify(target: string, state: TargetState, changes: readonly TargetChange[]): void {
    if (this.#states.get(target) !== state) return;
    for (const { key, notice } of changes) {
      if (notice === undefined) this.#options.onReturned({ target, key });
      else this.#options.onOut({ target, key, ...notice });
    }
  }
}

interface Watched {
  /** Of the target. */
  readonly id: string;
  readonly state: TargetState;
  readonly attempt: WatchedAttempt;
}

class TargetWatch implements AttemptWatch {
  readonly overdueAfterMs: number;
  readonly #health: TargetHealth;
  readonly #watched: Watched;
  #isUnderWay = true;

  constructor(health: TargetHealth, watched: Watched) {
    this.#health = health;
    this.#watched = watched;
    this.overdueAfterMs = watched.state.overdueAfterMs(watched.attempt);
  }

  answered(): void {
    if (this.#isUnderWay && !this.#watched.attempt.isAnswered) this.#health.answered(this.#watched);
  }

  ended(outcome: ObservedEnd): void {
    if (!this.#isUnderWay) return;
    this.#isUnderWay = false;
    this.#health.ended(this.#watched, outcome);
  }
}
