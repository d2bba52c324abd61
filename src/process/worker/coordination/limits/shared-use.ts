import type { Clock } from "../../../../domain/clock.ts";
import type { LimitScope } from "../../../../domain/limits/limit-scope.ts";
import { nameOf, type NamedScope } from "../../../../domain/limits/scope-use.ts";
import { countedSlots, guaranteeSlots, slotAt } from "../../../../domain/limits/slots.ts";
import { UsageWindow } from "../../../../domain/limits/window.ts";
import {
  useFromWire,
  useToWire,
  type WireUse,
  type WireUsed,
} from "../../../link/limit-use-wire.ts";

interface SharedWindow {
  readonly scope: NamedScope;
  readonly window: UsageWindow;
}

/** Interval between removals of empty windows. */
const sweepSlots = countedSlots;

/** What all workers have been granted, as reported by control, in common time. */
export class SharedUse {
  readonly generation: number;
  readonly #clock: Clock;
  readonly #windows = new Map<string, SharedWindow>();
  #sequence: number;
  #workers: number;
  /** How far this process's clock is ahead; the transit time of a note makes it appear larger. */
  #aheadMs = Number.POSITIVE_INFINITY;
  #isWhole = true;
  #sweptSlot = Number.NEGATIVE_INFINITY;

  /** `told`: a note with all windows. */
  constructor(told: WireUsed, clock: Clock) {
    this.#clock = clock;
    this.generation = told.generation;
    this.#sequence = told.sequence;
    this.#workers = told.workers;
    this.#compareTime(told);
    for (const wire of told.uses) {
      const use = useFromWire(wire);
      const window = this.#windowOf(use.scope, use.slot);
      window.advance(use.slot + use.amounts.length - 1);
      window.include(use);
    }
  }

  /** The sequence number of the last note; -1 if notes may be missing. */
  get sequence(): number {
    return this.#isWhole ? this.#sequence : -1;
  }

  get workers(): number {
    return this.#workers;
  }

  get aheadMs(): number {
    return this.#aheadMs;
  }

  /** Common time or earlier, so that nothing is forgotten too soon. */
  now(): number {
    return this.#clock.monotonic() - this.#aheadMs;
  }

  follow(told: WireUsed): void {
    this.#sequence = told.sequence;
    this.#workers = told.workers;
    this.#compareTime(told);
    for (const wire of told.uses) {
      const use = useFromWire(wire);
      this.#windowOf(use.scope, use.slot).follow(use);
    }
    this.#sweep();
  }

  /** Notes were lost with the link. */
  cut(): void {
    this.#isWhole = false;
  }

  /** What is charged under a scope; infinite if notes may be missing. */
  charged(scope: LimitScope): number {
    if (!this.#isWhole) return Number.POSITIVE_INFINITY;
    const { window } = this.#windows.get(keyOf(nameOf(scope))) ?? {};
    if (window === undefined) return 0;
    window.advance(slotAt(this.now()));
    if (scope.window !== "minute") window.count(guaranteeSlots(scope.window.seconds));
    return window.charged;
  }

  held(): readonly WireUse[] {
    const slot = slotAt(this.now());
    const uses: WireUse[] = [];
    for (const { scope, window } of this.#windows.values()) {
      window.advance(slot);
      const { held } = window;
      if (held !== undefined) uses.push(useToWire({ scope, ...held }));
    }
    return uses;
  }

  #compareTime({ now }: WireUsed): void {
    this.#aheadMs = Math.min(this.#aheadMs, this.#clock.monotonic() - now);
  }

  #windowOf(scope: NamedScope, slot: number): UsageWindow {
    const key = keyOf(scope);
    const known = this.#windows.get(key);
    const counted = scope.seconds === 0 ? countedSlots : guaranteeSlots(scope.seconds);
    if (known !== undefined) {
      if (known.window.counted !== counted) known.window.count(counted);
      if (known.scope.seconds !== scope.seconds) {
        this.#windows.set(key, { scope, window: known.window });
      }
      return known.window;
    }
    const window = new UsageWindow(slot, counted);
    this.#windows.set(key, { scope, window });
    return window;
  }

  #sweep(): void {
    const slot = slotAt(this.now());
    if (slot < this.#sweptSlot + sweepSlots) return;
    this.#sweptSlot = slot;
    for (const [key, { window }] of this.#windows) {
      window.advance(slot);
      if (window.held === undefined) this.#windows.delete(key);
    }
  }
}

/** Caps and guarantees of one id count separately. */
function keyOf({ id, unit, seconds }: NamedScope): string {
  return (unit === "requests" ? "r" : "t") + (seconds === 0 ? "c" : "g") + id;
}
