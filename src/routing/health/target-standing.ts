import type { UpstreamFailureKind } from "../../domain/errors/failure-kind.ts";
import type { EjectionSettings } from "../../domain/settings.ts";
import { Ejection, type EjectionNotice, type ScopedAttempt } from "./ejection.ts";
import { FailureTally } from "./failure-tally.ts";

/** A change of a target's ejections. */
export interface TargetChange {
  /** Undefined: all keys. */
  readonly key: string | undefined;
  /** Undefined: the target returned. */
  readonly ejected: EjectionNotice | undefined;
}

/** The state of the target's ejections when an attempt began. */
export interface StandingAttempt {
  readonly key: string;
  readonly all: ScopedAttempt;
  /** Undefined if the target was never ejected for the key alone. */
  readonly own: ScopedAttempt | undefined;
}

export interface Moment {
  readonly nowMs: number;
  readonly settings: EjectionSettings;
}

export interface FailureMoment extends Moment {
  /** Whether the failure broke off an answer. */
  readonly isAnswered: boolean;
}

/** Limit on keys with an ejection of their own; the oldest is dropped. */
const mostKeys = 64;
const afterReturn = "it failed again after its return";

/**
 * Ejections of a target: for all keys when calls of several or a probe fail, or for one key when
 * only its calls fail.
 */
export class TargetStanding {
  readonly #forAll = new Ejection();
  readonly #byKey = new Map<string, Ejection>();
  /** Failures before and after the first event: an answer resets only the first. */
  readonly #unanswered = new FailureTally();
  readonly #brokenOff = new FailureTally();

  isEjectedFor(key: string): boolean {
    return this.#forAll.isEjected || this.#byKey.get(key)?.isEjected === true;
  }

  /** Time out of service for all keys; 0 in service. */
  outForMs(nowMs: number): number {
    return this.#forAll.outForMs(nowMs);
  }

  get isEjectedForAll(): boolean {
    return this.#forAll.isEjected;
  }

  /** The longer of the ejections that apply to the key. */
  ejectionFor(key: string, nowMs: number): Ejection {
    const own = this.#byKey.get(key);
    const isOwn = own?.isEjected === true && own.leftMs(nowMs) >= this.#forAll.leftMs(nowMs);
    return isOwn ? own : this.#forAll;
  }

  failureShare(nowMs: number): number {
    const unanswered = this.#unanswered.failureShare(nowMs);
    return Math.max(unanswered, this.#brokenOff.failureShare(nowMs));
  }

  isStartingSlowly(key: string, nowMs: number): boolean {
    return this.#scopesOf(key).some((scope) => scope.slowStartAt(nowMs) !== undefined);
  }

  hasRoom(key: string, nowMs: number): boolean {
    return this.#scopesOf(key).every((scope) => scope.slowStartAt(nowMs)?.hasRoom !== false);
  }

  startSlowly(key: string | undefined, atMs: number): void {
    this.#scopeOf(key).startSlowly(atMs);
  }

  begin(key: string, nowMs: number): StandingAttempt {
    return {
      key,
      all: this.#forAll.begin(nowMs),
      own: this.#byKey.get(key)?.begin(nowMs),
    };
  }

  answered(attempt: StandingAttempt, nowMs: number): readonly TargetChange[] {
    for (const scoped of scopesIn(attempt)) scoped.slowStart?.answered();
    return this.lived(attempt, nowMs);
  }

  /** The answer was completed. */
  endedWell(attempt: StandingAttempt, nowMs: number): readonly TargetChange[] {
    for (const scoped of scopesIn(attempt)) scoped.slowStart?.endedWell();
    const changes = this.#showedLife(attempt, nowMs);
    if (this.#isCurrent(attempt)) this.#brokenOff.succeeded(attempt.key, nowMs);
    return changes;
  }

  /** The target showed that it works, even if the attempt then failed. */
  lived(attempt: StandingAttempt, nowMs: number): readonly TargetChange[] {
    const changes = this.#showedLife(attempt, nowMs);
    if (this.#isCurrent(attempt)) this.#unanswered.succeeded(attempt.key, nowMs);
    return changes;
  }

  failed(attempt: StandingAttempt, kind: string, given: FailureMoment): TargetChange | undefined {
    if (!this.#isCurrent(attempt)) return undefined;
    const { key, all, own } = attempt;
    const moment = { ...given, settings: settingsFor(kind, given.settings) };
    if (kind === blockedKind && !all.scope.isEjected) {
      return this.#eject(undefined, moment, lastly("its account is not served", kind));
    }
    if (all.scope.isEjected || own?.scope.isEjected === true) {
      return this.#failedWhileEjected(attempt, kind, moment);
    }
    const { nowMs, settings } = moment;
    const tally = moment.isAnswered ? this.#brokenOff : this.#unanswered;
    tally.failed(key, nowMs);
    const isOfSeveral = isAfterEjection(all, nowMs) && all.slowStart?.failed(key) === true;
    const forAll = isOfSeveral ? afterReturn : tally.reasonForAll(nowMs, settings);
    if (forAll !== undefined) return this.#eject(undefined, moment, lastly(forAll, kind));
    const isBack =
      isAfterEjection(all, nowMs) || (own !== undefined && isAfterEjection(own, nowMs));
    const forKey = isBack ? afterReturn : tally.reasonForKey(key, nowMs, settings);
    return forKey === undefined ? undefined : this.#eject(key, moment, lastly(forKey, kind));
  }

  /** Ends due ejections. */
  probeAnswered(nowMs: number): readonly TargetChange[] {
    const changes: TargetChange[] = [];
    if (this.#forAll.isDue(nowMs)) changes.push(this.#return(undefined, nowMs));
    for (const [key, own] of this.#byKey) {
      if (own.isDue(nowMs)) changes.push(this.#return(key, nowMs));
    }
    return changes;
  }

  probeFailed(kind: string, { nowMs, settings }: Moment): TargetChange | undefined {
    if (this.#forAll.isEjected && !this.#forAll.isDue(nowMs)) return undefined;
    const moment = { nowMs, settings: settingsFor(kind, settings) };
    return this.#eject(undefined, moment, `a probe failed: ${kind}`);
  }

  #failedWhileEjected(
    { key, all, own }: StandingAttempt,
    kind: string,
    moment: Moment,
  ): TargetChange | undefined {
    const because = lastly("the attempt after its ejection failed", kind);
    const isOfAll = all.scope.isEjected;
    const isTrial = isOfAll ? all.isTrial : own?.isTrial === true;
    return isTrial ? this.#eject(isOfAll ? undefined : key, moment, because) : undefined;
  }

  #showedLife(attempt: StandingAttempt, nowMs: number): readonly TargetChange[] {
    const { key, all, own } = attempt;
    if (!all.isTrial && own?.isTrial !== true) return [];
    const changes: TargetChange[] = [];
    if (decides(all)) changes.push(this.#return(undefined, nowMs, all));
    if (own !== undefined && decides(own)) changes.push(this.#return(key, nowMs, own));
    return changes;
  }

  /** Whether the ejections have not changed since the attempt began. */
  #isCurrent({ key, all, own }: StandingAttempt): boolean {
    const ownPeriod = this.#byKey.get(key)?.period ?? 0;
    return all.period === this.#forAll.period && (own?.period ?? 0) === ownPeriod;
  }

  #eject(key: string | undefined, { nowMs, settings }: Moment, because: string): TargetChange {
    this.#forgetFailures(key);
    return { key, ejected: this.#scopeOf(key).eject(nowMs, settings, because) };
  }

  #forgetFailures(key: string | undefined): void {
    for (const tally of [this.#unanswered, this.#brokenOff]) {
      if (key === undefined) tally.clear();
      else tally.forget(key);
    }
  }

  #scopeOf(key: string | undefined): Ejection {
    return key === undefined ? this.#forAll : this.#ownOf(key);
  }

  #return(key: string | undefined, nowMs: number, attempt?: ScopedAttempt): TargetChange {
    if (key === undefined) {
      this.#unanswered.clear();
      this.#brokenOff.clear();
    }
    this.#scopeOf(key).return(nowMs, attempt);
    return { key, ejected: undefined };
  }

  #ownOf(key: string): Ejection {
    const known = this.#byKey.get(key);
    if (known !== undefined) return known;
    if (this.#byKey.size >= mostKeys) {
      const [first] = this.#byKey.keys();
      if (first !== undefined) this.#byKey.delete(first);
    }
    const own = new Ejection();
    this.#byKey.set(key, own);
    return own;
  }

  #scopesOf(key: string): readonly Ejection[] {
    const own = this.#byKey.get(key);
    return own === undefined ? [this.#forAll] : [this.#forAll, own];
  }
}

/**
 * The provider serves nobody who uses the account, as its code says; no request can be the cause.
 * It lasts until somebody pays, so there is no point in asking every few seconds.
 */
const blockedKind: UpstreamFailureKind = "account-blocked";
const blockedMs = 300_000;

function settingsFor(kind: string, settings: EjectionSettings): EjectionSettings {
  if (kind !== blockedKind) return settings;
  const forMs = Math.max(blockedMs, settings.longestMs);
  return { ...settings, firstMs: forMs, longestMs: forMs };
}

function scopesIn({ all, own }: StandingAttempt): readonly ScopedAttempt[] {
  return own === undefined ? [all] : [all, own];
}

/** Whether the attempt belongs to a slow start after an ejection that is still running. */
function isAfterEjection({ scope, slowStart }: ScopedAttempt, nowMs: number): boolean {
  return slowStart?.isAfterEjection === true && scope.slowStartAt(nowMs) === slowStart;
}

function decides({ scope, isTrial, period }: ScopedAttempt): boolean {
  return scope.isEjected && isTrial && period === scope.period;
}

function lastly(because: string, kind: string): string {
  return `${because}, at last: ${kind}`;
}
