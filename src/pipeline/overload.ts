import type { Clock } from "../domain/clock.ts";
import type { GatewayError } from "../domain/gateway-error.ts";
import type { Key } from "../domain/key.ts";
import { overloaded } from "../domain/overload-refusal.ts";
import type { OverloadSettings } from "../domain/routing-settings.ts";
import type { CapacityClass } from "../domain/usage.ts";
import { LoopDelay } from "./loop-delay.ts";
import { largestShare, OverloadControl } from "./overload-control.ts";

export interface OverloadOptions {
  readonly clock: Pick<Clock, "monotonic" | "schedule">;
  /** From 0 to 1. */
  readonly random: () => number;
  /** Read anew each time: a reload changes them. */
  readonly settings: () => OverloadSettings;
  /** Calls under way, the one that is decided about included. */
  readonly callsUnderWay: () => number;
  /** Told of every call that is refused. */
  readonly onRefused?: (capacityClass: CapacityClass) => void;
  /** Told when it begins to refuse, and when it has refused nothing for a while. */
  readonly onChange?: (isShedding: boolean) => void;
}

/** How often the event loop's delay is measured. */
const measureMs = 20;
/** How often the shares of refused calls are set anew. */
const controlMs = 50;
/** So much of the calls of before counts as of now, each time. */
const arrivalsKept = 0.8;
/** Delays of this many targets, and growing from there, refuse provisioned calls too. */
const provisionedFromTargets = 8;
/** What of the most calls at once is open to each class: the rest is kept for more important ones. */
const roomOf: Readonly<Record<CapacityClass, number>> = {
  spillover: 0.8,
  "on-demand": 0.9,
  provisioned: 1,
};
/** Without a refusal for so long, the overload is over. */
const calmMs = 5_000;

/**
 * Keeps the process at work that it can finish. Beyond that, it refuses calls at the door, where
 * they cost least, in the order of their classes: spillover first, then on-demand, provisioned last
 * and only when nothing else helps. `start` it, and `stop` it when the process ends.
 */
export class OverloadGuard {
  readonly #options: OverloadOptions;
  readonly #delay = new LoopDelay();
  readonly #control = new OverloadControl();
  /** Of the last moments, older ones counting less. */
  readonly #arrivals = { spillover: 0, "on-demand": 0 };
  readonly #shares: Record<CapacityClass, number> = {
    spillover: 0,
    "on-demand": 0,
    provisioned: 0,
  };
  #controlledAt = 0;
  #refusedAt = Number.NEGATIVE_INFINITY;
  #isShedding = false;
  #cancel: (() => void) | undefined;

  constructor(options: OverloadOptions) {
    this.#options = options;
  }

  start(): void {
    this.#controlledAt = this.#options.clock.monotonic();
    this.#schedule();
  }

  stop(): void {
    this.#cancel?.();
    this.#cancel = undefined;
  }

  /** The longest delay of the event loop in the last seconds, for the metrics. */
  get longestDelayMs(): number {
    return this.#delay.longestMs(this.#options.clock.monotonic());
  }

  /**
   * Decides before the body of a call is read. Calls of keys without units are on-demand for sure;
   * of others it is only known that they may be provisioned.
   */
  refusesUnread(key: Pick<Key, "provisionedUnits">): boolean {
    if (key.provisionedUnits === 0) return this.#refuses("on-demand");
    return !this.#hasRoom("provisioned") && this.#refuse("provisioned");
  }

  /** Decides about a call whose key has units, once its class is known; others were let in. */
  refusesAdmitted(key: Pick<Key, "provisionedUnits">, capacityClass: CapacityClass): boolean {
    return key.provisionedUnits > 0 && this.#refuses(capacityClass);
  }

  /** 503, to come back in a second or two. */
  refusal(): GatewayError {
    return overloaded(this.#options.random());
  }

  #refuses(capacityClass: CapacityClass): boolean {
    if (capacityClass !== "provisioned") this.#arrivals[capacityClass] += 1;
    const share = this.#shares[capacityClass];
    const isUnlucky = share > 0 && this.#options.random() < share;
    return (isUnlucky || !this.#hasRoom(capacityClass)) && this.#refuse(capacityClass);
  }

  #hasRoom(capacityClass: CapacityClass): boolean {
    const { maxCalls } = this.#options.settings();
    return this.#options.callsUnderWay() <= Math.ceil(maxCalls * roomOf[capacityClass]);
  }

  #refuse(capacityClass: CapacityClass): true {
    this.#refusedAt = this.#options.clock.monotonic();
    this.#options.onRefused?.(capacityClass);
    if (!this.#isShedding) this.#change(true);
    return true;
  }

  #change(isShedding: boolean): void {
    this.#isShedding = isShedding;
    this.#options.onChange?.(isShedding);
  }

  #schedule(): void {
    const { clock } = this.#options;
    const dueAt = clock.monotonic() + measureMs;
    this.#cancel = clock.schedule(() => {
      this.#measured(dueAt, clock.monotonic());
      this.#schedule();
    }, measureMs);
  }

  #measured(dueAt: number, now: number): void {
    this.#delay.add(Math.max(0, now - dueAt), now);
    const sinceMs = now - this.#controlledAt;
    if (sinceMs < controlMs) return;
    this.#controlledAt = now;
    const delayMs = this.#delay.standingMs;
    const targetMs = this.#options.settings().loopDelayMs;
    this.#control.update({ delayMs, targetMs, sinceMs });
    this.#share(delayMs / targetMs);
    if (this.#isShedding && now - this.#refusedAt >= calmMs) this.#change(false);
  }

  /** Deals out what is to be refused: all of it to spillover, as far as there is any. */
  #share(targets: number): void {
    const arrivals = this.#arrivals;
    const all = arrivals.spillover + arrivals["on-demand"];
    const refused = this.#control.share * all;
    const ofSpillover = Math.min(refused, largestShare * arrivals.spillover);
    this.#shares.spillover = shareOf(ofSpillover, arrivals.spillover);
    this.#shares["on-demand"] = shareOf(refused - ofSpillover, arrivals["on-demand"]);
    const beyond = (targets - provisionedFromTargets) / provisionedFromTargets;
    this.#shares.provisioned = Math.min(largestShare, Math.max(0, beyond));
    arrivals.spillover *= arrivalsKept;
    arrivals["on-demand"] *= arrivalsKept;
  }
}

function shareOf(refused: number, arrivals: number): number {
  return arrivals === 0 ? 0 : Math.min(largestShare, refused / arrivals);
}
