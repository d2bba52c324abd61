import type { Clock } from "../../../domain/clock.ts";
import type { WireBound } from "../../link/place-wire.ts";

export interface ScarcePlacesOptions {
  readonly clock: Pick<Clock, "monotonic" | "schedule">;
  /** Whether so few places are in use that workers may keep some. */
  readonly isPlenty: (bound: WireBound) => boolean;
}

/** A worker that may keep places that no call uses. */
export interface KeepingWorker {
  /** Resolves when it keeps none there; rejects if that takes too long. */
  readonly askScarce: (bounds: readonly WireBound[]) => Promise<void>;
  readonly tellPlenty: (bounds: readonly WireBound[]) => void;
}

interface Scarce {
  readonly bound: WireBound;
  /** When places were last needed. */
  neededAtMs: number;
  /** Undefined once no worker keeps any. */
  recalled: Promise<void> | undefined;
}

/** Time without need after which places may be kept again, and between two checks. */
const calmMs = 1_000;

/**
 * The bounds near which workers keep no unused places. No call is refused or waits before all
 * workers have given back what they kept there.
 */
export class ScarcePlaces {
  readonly #options: ScarcePlacesOptions;
  readonly #scarce = new Map<string, Scarce>();
  readonly #workers = new Set<KeepingWorker>();
  #isPlanned = false;

  constructor(options: ScarcePlacesOptions) {
    this.#options = options;
  }

  /** A worker keeps nothing until it has been told what is scarce. */
  join(worker: KeepingWorker): void {
    this.#workers.add(worker);
    const bounds = [...this.#scarce.values()].map(({ bound }) => bound);
    worker.askScarce(bounds).catch(() => undefined);
  }

  leave(worker: KeepingWorker): void {
    this.#workers.delete(worker);
  }

  /** Places are needed there. Resolves when no worker keeps any; undefined if none does already. */
  recall(bounds: readonly WireBound[]): Promise<void> | undefined {
    const neededAtMs = this.#options.clock.monotonic();
    let recalled: Promise<void> | undefined;
    for (const bound of bounds) {
      const scarce = this.#at(bound);
      scarce.neededAtMs = neededAtMs;
      const before = recalled;
      recalled = before === undefined ? scarce.recalled : before.then(() => scarce.recalled);
    }
    return recalled;
  }

  #at(bound: WireBound): Scarce {
    const name = bound.join(" ");
    const known = this.#scarce.get(name);
    if (known !== undefined) return known;
    const scarce: Scarce = { bound, neededAtMs: 0, recalled: undefined };
    this.#scarce.set(name, scarce);
    this.#plan();
    if (this.#workers.size === 0) return scarce;
    const asked = Array.from(this.#workers, (worker) => worker.askScarce([bound]));
    // A worker that does not answer in time no longer delays anybody.
    scarce.recalled = Promise.allSettled(asked).then(() => {
      scarce.recalled = undefined;
    });
    return scarce;
  }

  #plan(): void {
    if (this.#isPlanned) return;
    this.#isPlanned = true;
    this.#options.clock.schedule(() => {
      this.#isPlanned = false;
      this.#look();
    }, calmMs);
  }

  #look(): void {
    const { clock, isPlenty } = this.#options;
    const calmSinceMs = clock.monotonic() - calmMs;
    const plenty: WireBound[] = [];
    for (const [name, { bound, neededAtMs, recalled }] of this.#scarce) {
      if (neededAtMs > calmSinceMs || recalled !== undefined || !isPlenty(bound)) continue;
      this.#scarce.delete(name);
      plenty.push(bound);
    }
    if (plenty.length > 0) for (const worker of this.#workers) worker.tellPlenty(plenty);
    if (this.#scarce.size > 0) this.#plan();
  }
}
