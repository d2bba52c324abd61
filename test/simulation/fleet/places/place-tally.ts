import type { VirtualTime } from "../../virtual-time.ts";

export interface PlaceTallyOptions {
  readonly time: VirtualTime;
  readonly places: number;
  /** What happens before is not measured. */
  readonly fromMs: number;
}

/** Below this part of the places, calls that wait should have had more. */
const enough = 0.95;

/** Of the calls of the account with half of all calls, and of all others. */
interface Group {
  readonly waits: number[];
  refused: number;
}

/** What calls hold and wait for, summed over time. */
export class PlaceTally {
  readonly #options: PlaceTallyOptions;
  readonly #heavy: Group = { waits: [], refused: 0 };
  readonly #light: Group = { waits: [], refused: 0 };
  #held = 0;
  #waiting = 0;
  #most = 0;
  #lastMs = 0;
  #waitedForMs = 0;
  #unusedPlaceMs = 0;
  #overMs = 0;
  #lowMs = 0;
  #lowUntilMs = 0;

  constructor(options: PlaceTallyOptions) {
    this.#options = options;
  }

  /** Calls begin to wait, or wait no more. */
  waits(count: number): void {
    this.#change(0, count);
  }

  served(isHeavy: boolean, waitedMs: number): void {
    this.#change(1, 0);
    if (this.#isMeasured) this.#group(isHeavy).waits.push(waitedMs);
  }

  refused(isHeavy: boolean): void {
    if (this.#isMeasured) this.#group(isHeavy).refused += 1;
  }

  left(): void {
    this.#change(-1, 0);
  }

  result() {
    const { places } = this.#options;
    return {
      /** Most places in use at once, by those that there are. */
      most: this.#most / places,
      /** Part of the places that no call used while others waited. */
      unused: this.#waitedForMs === 0 ? 0 : this.#unusedPlaceMs / places / this.#waitedForMs,
      /** How long more places were in use than there are. */
      overMs: this.#overMs,
      /** How long calls waited while fewer than 95 % of the places were in use. */
      lowMs: this.#lowMs,
      /** When that ended. */
      lowUntilMs: this.#lowUntilMs,
      heavy: summaryOf(this.#heavy),
      light: summaryOf(this.#light),
    };
  }

  #change(held: number, waiting: number): void {
    const { time, fromMs } = this.#options;
    const passedMs = time.now - Math.max(this.#lastMs, fromMs);
    if (passedMs > 0) this.#passed(passedMs);
    this.#lastMs = time.now;
    this.#held += held;
    this.#waiting += waiting;
    this.#most = Math.max(this.#most, this.#held);
  }

  #passed(passedMs: number): void {
    const { time, places } = this.#options;
    if (this.#held > places) this.#overMs += passedMs;
    if (this.#waiting === 0) return;
    this.#waitedForMs += passedMs;
    this.#unusedPlaceMs += passedMs * Math.max(0, places - this.#held);
    if (this.#held >= enough * places) return;
    this.#lowMs += passedMs;
    this.#lowUntilMs = time.now;
  }

  #group(isHeavy: boolean): Group {
    return isHeavy ? this.#heavy : this.#light;
  }

  get #isMeasured(): boolean {
    return this.#options.time.now >= this.#options.fromMs;
  }
}

function summaryOf({ waits, refused }: Group) {
  const calls = waits.length + refused;
  return {
    served: waits.length,
    /** By all calls. */
    refused: calls === 0 ? 0 : refused / calls,
    /** Waits of calls that got a place, sorted, in milliseconds. */
    waits: Float64Array.from(waits).sort(),
  };
}
