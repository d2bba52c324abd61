import type { Clock } from "../../domain/clock.ts";
import { type GatewayError, overloaded } from "../../domain/errors/gateway-error.ts";
import type { Key } from "../../domain/keys/key.ts";
import type { OverloadSettings } from "../../domain/settings.ts";
import type { CapacityClass } from "../../domain/usage/usage.ts";
import { LoopMeter } from "./loop-meter.ts";

export interface OverloadOptions {
  readonly clock: Pick<Clock, "monotonic" | "schedule">;
  /** From 0 to 1. */
  readonly random: () => number;
  /** Read each time: a reload changes them. */
  readonly settings: () => OverloadSettings;
  /** Requests of the listener under way, including the one being decided. */
  readonly callsUnderWay: () => number;
  readonly events: OverloadObserver;
}

/** Receives events for the log and the metrics. */
export interface OverloadObserver {
  /** Called once, with a reader of the longest recent delay of the event loop. */
  measureDelay(delayMs: () => number): void;
  callRefused(capacityClass: CapacityClass): void;
  /** Called when the guard begins to refuse, and when it has refused nothing for a while. */
  changed(isShedding: boolean): void;
}

const controlMs = 50;
/** What the bound is multiplied by while the loop is late, and while it is not. */
const fall = 0.95;
const growth = 1.01;
/** A loop that is behind by so many targets answers refused calls only after its current turn. */
const lateTargets = 2;
/** From a delay of this many targets on, provisioned calls are refused too. */
const provisionedFromTargets = 8;
const largestShare = 0.98;
/** The share of the bound that each class may use; the rest is for more important classes. */
const roomOf: Readonly<Record<CapacityClass, number>> = {
  spillover: 0.7,
  "on-demand": 0.9,
  provisioned: 1,
};
/** This few calls are not the cause of a delay: the bound never falls below. */
const harmlessCalls = 32;
/** Without a refusal for this long, the overload is over. */
const calmMs = 5_000;

/**
 * Bounds the calls under way in the process, and lowers the bound while its loop is late. Further
 * calls are refused on arrival, where they cost least, in the order of their classes: spillover
 * first, then on-demand, provisioned last and only when nothing else helps. `start` it, and `stop`
 * it when the process ends.
 */
export class OverloadGuard {
  readonly #options: OverloadOptions;
  readonly loop: LoopMeter;
  /** Most calls without a guarantee while the loop has been late; Infinity otherwise. */
  #bound = Infinity;
  #provisionedShare = 0;
  #controlledAt = 0;
  #wasLate = false;
  #refusedAt = Number.NEGATIVE_INFINITY;
  #isShedding = false;
  /** The current turn of the event loop, for answers that wait for its end. */
  #turn: PromiseWithResolvers<void> | undefined;

  constructor(options: OverloadOptions) {
    this.#options = options;
    this.loop = new LoopMeter(options.clock, (now) => {
      this.#measured(now);
      this.#endTurn();
    });
    options.events.measureDelay(() => this.loop.longestMs);
  }

  start(): void {
    this.#controlledAt = this.#options.clock.monotonic();
    this.loop.start();
  }

  stop(): void {
    this.loop.stop();
    this.#endTurn();
  }

  /**
   * Decides before the body of a call is read. Calls of keys without units are on-demand; others
   * may be provisioned.
   */
  refusesUnread(key: Pick<Key, "provisionedUnits">): boolean {
    if (key.provisionedUnits === 0) return this.#refuses("on-demand");
    return !this.#hasRoom("provisioned") && this.#refuse("provisioned");
  }

  /** Decides about a call whose key has units, once its class is known; others pass. */
  refusesAdmitted(key: Pick<Key, "provisionedUnits">, capacityClass: CapacityClass): boolean {
    return key.provisionedUnits > 0 && this.#refuses(capacityClass);
  }

  /** Most calls without a guarantee under way. */
  get bound(): number {
    return Math.floor(Math.min(this.#bound, this.#options.settings().maxCalls));
  }

  /**
   * What the answer to a refused call has to wait for; undefined: nothing. An answered caller may
   * retry at once, and the runtime serves such connections before anything else: a late loop would
   * do nothing but refuse.
   */
  get answersAfter(): Promise<void> | undefined {
    if (!this.#isLate(this.#options.clock.monotonic())) return undefined;
    this.#turn ??= Promise.withResolvers<void>();
    return this.#turn.promise;
  }

  /** 503, with a retry in a second or two. */
  refusal(): GatewayError {
    return overloaded(this.#options.random());
  }

  #refuses(capacityClass: CapacityClass): boolean {
    const isAdmitted =
      capacityClass === "provisioned"
        ? this.#admitsProvisioned()
        : this.#isWithinBound(capacityClass);
    return !(isAdmitted && this.#hasRoom(capacityClass)) && this.#refuse(capacityClass);
  }

  #admitsProvisioned(): boolean {
    const share = this.#provisionedShare;
    const { callsUnderWay, random } = this.#options;
    return share === 0 || callsUnderWay() <= harmlessCalls || random() >= share;
  }

  #isWithinBound(capacityClass: CapacityClass): boolean {
    if (this.#bound === Infinity) return true;
    const calls = this.#options.callsUnderWay();
    if (calls <= harmlessCalls) return true;
    return calls <= this.#bound * roomOf[capacityClass];
  }

  /**
   * Whether this turn of the loop already takes too long. The next measurement would come too late.
   */
  #isLate(now: number): boolean {
    return this.loop.lateMs(now) > lateTargets * this.#options.settings().loopDelayMs;
  }

  #hasRoom(capacityClass: CapacityClass): boolean {
    const { maxCalls } = this.#options.settings();
    return this.#options.callsUnderWay() <= Math.ceil(maxCalls * roomOf[capacityClass]);
  }

  #refuse(capacityClass: CapacityClass): true {
    this.#refusedAt = this.#options.clock.monotonic();
    this.#options.events.callRefused(capacityClass);
    if (!this.#isShedding) this.#change(true);
    return true;
  }

  #change(isShedding: boolean): void {
    this.#isShedding = isShedding;
    this.#options.events.changed(isShedding);
  }

  #endTurn(): void {
    this.#turn?.resolve();
    this.#turn = undefined;
  }

  #measured(now: number): void {
    if (now - this.#controlledAt < controlMs) return;
    this.#controlledAt = now;
    const { callsUnderWay, settings } = this.#options;
    const { loopDelayMs, maxCalls } = settings();
    const targets = this.loop.standingMs / loopDelayMs;
    const wasLate = this.#wasLate;
    this.#wasLate = targets > 1;
    if (targets > 1) {
      // One pause, however long, says nothing about the calls.
      if (!wasLate) return;
      const most = Math.min(this.#bound, callsUnderWay());
      this.#bound = Math.max(harmlessCalls, most * fall);
    } else if (this.#bound > maxCalls) this.#bound = Infinity;
    else this.#bound *= growth;
    // Only when the calls of all other classes are already refused.
    const isExhausted = this.#bound === harmlessCalls;
    const beyond = isExhausted ? targets / provisionedFromTargets - 1 : 0;
    this.#provisionedShare = Math.min(largestShare, Math.max(0, beyond));
    if (this.#isShedding && now - this.#refusedAt >= calmMs) this.#change(false);
  }
}
