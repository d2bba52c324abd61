import type { EjectionSettings } from "../../domain/routing-settings.ts";
import { SlowStart } from "./slow-start.ts";

export interface EjectionNotice {
  readonly forMs: number;
  /** In a row, without a healthy period as long as the ejection before. */
  readonly times: number;
  readonly because: string;
}

/** An attempt as an ejection sees it. */
export interface ScopedAttempt {
  readonly scope: Ejection;
  /** What began before the target was ejected or returned says nothing about it now. */
  period: number;
  /** It began when the ejection was due to end, so it decides. */
  readonly isTrial: boolean;
  /** The slow start that it is part of. */
  readonly slowStart: SlowStart | undefined;
}

/**
 * Whether a target is ejected, for all keys or for one. An ejection that is due ends when a probe,
 * or an attempt that began after the due time, is answered; the target then starts slowly. If that
 * fails it is ejected again, for twice as long up to a bound.
 */
export class Ejection {
  #times = 0;
  #forMs = 0;
  /** Undefined: in service. */
  #dueAtMs: number | undefined;
  #returnedAtMs = Number.NEGATIVE_INFINITY;
  #slowStart: SlowStart | undefined;
  #period = 0;
  #because = "";
  #sinceMs = Number.POSITIVE_INFINITY;

  get isEjected(): boolean {
    return this.#dueAtMs !== undefined;
  }

  get because(): string {
    return this.#because;
  }

  get period(): number {
    return this.#period;
  }

  /** 0 for a target in service, and for one whose ejection is due to end. */
  leftMs(nowMs: number): number {
    return this.#dueAtMs === undefined ? 0 : Math.max(0, this.#dueAtMs - nowMs);
  }

  /** How long it has been out of service, however often it was ejected again; 0 in service. */
  outForMs(nowMs: number): number {
    return this.#dueAtMs === undefined ? 0 : nowMs - this.#sinceMs;
  }

  isDue(nowMs: number): boolean {
    return this.#dueAtMs !== undefined && nowMs >= this.#dueAtMs;
  }

  /** Undefined when the target has been well for long enough since it returned. */
  slowStartAt(nowMs: number): SlowStart | undefined {
    if (this.#slowStart?.isOver(nowMs) === true) this.#slowStart = undefined;
    return this.#slowStart;
  }

  begin(nowMs: number): ScopedAttempt {
    const slowStart = this.slowStartAt(nowMs);
    slowStart?.enter();
    return { scope: this, period: this.#period, isTrial: this.isDue(nowMs), slowStart };
  }

  eject(nowMs: number, settings: EjectionSettings, because: string): EjectionNotice {
    const wasHealthy = this.#dueAtMs === undefined && nowMs - this.#returnedAtMs >= this.#forMs;
    this.#times = wasHealthy ? 1 : this.#times + 1;
    if (this.#dueAtMs === undefined) this.#sinceMs = nowMs;
    this.#forMs = Math.min(settings.longestMs, settings.firstMs * 2 ** (this.#times - 1));
    this.#dueAtMs = nowMs + this.#forMs;
    this.#slowStart = undefined;
    this.#because = because;
    this.#period += 1;
    return { forMs: this.#forMs, times: this.#times, because };
  }

  /** An attempt that brought the target back is part of the period after it. */
  return(nowMs: number, attempt?: ScopedAttempt): void {
    this.#dueAtMs = undefined;
    this.#returnedAtMs = nowMs;
    this.#slowStart = new SlowStart(nowMs, true);
    this.#period += 1;
    if (attempt !== undefined) attempt.period = this.#period;
  }

  /** After a pause, as after an ejection. */
  startSlowly(atMs: number): void {
    if (this.#dueAtMs === undefined) this.#slowStart = new SlowStart(atMs, false);
  }
}
