import type { EjectionSettings } from "../../domain/settings.ts";

export interface EjectionNotice {
  readonly forMs: number;
  /** Ejections in a row, without a healthy period as long as the previous ejection between them. */
  readonly times: number;
  readonly because: string;
}

/** The state of an ejection when an attempt began. */
export interface ScopedAttempt {
  readonly scope: Ejection;
  /** An attempt from an earlier period is no evidence about the current one. */
  period: number;
  /** It began after the ejection was due to end, so its result decides. */
  readonly isTrial: boolean;
  /** The slow start it belongs to. */
  readonly slowStart: SlowStart | undefined;
}

/**
 * Ejection of a target, for all keys or for one. A due ejection ends when a probe, or an attempt
 * that began after the due time, is answered; the target then starts slowly. If that fails, it is
 * ejected again for twice as long, up to a maximum.
 */
export class Ejection {
  #times = 0;
  #forMs = 0;
  /** Undefined while in service. */
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

  /** 0 in service and once the ejection is due to end. */
  leftMs(nowMs: number): number {
    return this.#dueAtMs === undefined ? 0 : Math.max(0, this.#dueAtMs - nowMs);
  }

  /** Time out of service across repeated ejections; 0 in service. */
  outForMs(nowMs: number): number {
    return this.#dueAtMs === undefined ? 0 : nowMs - this.#sinceMs;
  }

  isDue(nowMs: number): boolean {
    return this.#dueAtMs !== undefined && nowMs >= this.#dueAtMs;
  }

  /** Undefined once the slow start is over. */
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
    const forMs = Math.min(settings.longestMs, settings.firstMs * 2 ** (this.#times - 1));
    this.#begin(nowMs, forMs, because);
    return { forMs, times: this.#times, because };
  }

  /** The attempt that ended the ejection belongs to the new period. */
  return(nowMs: number, attempt?: ScopedAttempt): void {
    this.#dueAtMs = undefined;
    this.#returnedAtMs = nowMs;
    this.#slowStart = new SlowStart(nowMs, true);
    this.#period += 1;
    if (attempt !== undefined) attempt.period = this.#period;
  }

  /** Starts slowly after a pause. */
  startSlowly(atMs: number): void {
    if (this.#dueAtMs === undefined) this.#slowStart = new SlowStart(atMs, false);
  }

  #begin(nowMs: number, forMs: number, because: string): void {
    this.#forMs = forMs;
    this.#dueAtMs = nowMs + forMs;
    this.#slowStart = undefined;
    this.#because = because;
    this.#period += 1;
  }
}

/** This many answers, one of them completed, end the slow start. */
const answersToEnd = 10;
/** One failure in this many answers does not cause another ejection. */
const fewPart = 4;
/** The slow start ends after this time even with fewer answers. */
const longestMs = 10_000;

/**
 * Ramps up a target that returned: one attempt at first and one more per answer, so that attempts
 * double with each round trip (TCP slow start, RFC 5681). If it is still broken, few callers fail.
 */
export class SlowStart {
  readonly #startedAtMs: number;
  /** After an ejection, as opposed to a pause: a failure shows that the target is still broken. */
  readonly isAfterEjection: boolean;
  #inFlight = 0;
  #answers = 0;
  #hasGoodEnd = false;
  #failures = 0;
  readonly #failedKeys = new Set<string>();

  constructor(nowMs: number, isAfterEjection: boolean) {
    this.#startedAtMs = nowMs;
    this.isAfterEjection = isAfterEjection;
  }

  get hasRoom(): boolean {
    return this.#inFlight < 1 + this.#answers;
  }

  isOver(nowMs: number): boolean {
    const isProven = this.#answers >= answersToEnd && this.#hasGoodEnd;
    return isProven || nowMs - this.#startedAtMs >= longestMs;
  }

  enter(): void {
    this.#inFlight += 1;
  }

  /** Once per `enter`. */
  leave(): void {
    this.#inFlight -= 1;
  }

  answered(): void {
    this.#answers += 1;
  }

  endedWell(): void {
    this.#hasGoodEnd = true;
  }

  /** Returns whether attempts of several keys failed, and more than a few. */
  failed(key: string): boolean {
    this.#failures += 1;
    this.#failedKeys.add(key);
    return this.#failedKeys.size > 1 && this.#failures * fewPart > this.#answers;
  }
}
