import type { Clock } from "../../../domain/clock.ts";
import { Coalesced } from "../../../domain/waiting/coalesced.ts";
import type { SlotStore } from "../../../store/slots.ts";

/** What calls of this process hold of a bound, and what they wait for. */
export interface Demand {
  readonly used: number;
  readonly waiting: number;
}

export interface SlotSetTerms {
  readonly bound: string;
  readonly demand: () => Demand;
  /** The least share of a process in a loss; 0 for the slots of a key, which has others, too. */
  readonly leastShare: 0 | 1;
  /** There are more or fewer slots than before. */
  readonly onChanged: () => void;
}

export interface SlotServices {
  readonly clock: Clock;
  readonly store: SlotStore;
}

/** How soon calls that wait ask again, and how long a slot stays that no call uses. */
const againMs = 25;
/** How long others are believed to have too few. */
const fairMs = 100;

/** The slots of one bound that this process may use without asking. */
export class SlotSet {
  limit = Infinity;
  readonly #options: SlotSetTerms & SlotServices;
  #held = 0;
  #heldUntilMs = -Infinity;
  /** What it leaves to others that have too few, and until when that is known. */
  #fair = Infinity;
  #fairUntilMs = -Infinity;
  /** How many calls may run until the next exchange, since one ended that others wait for. */
  #cap = Infinity;
  /** Calls that ask and are in no queue. */
  #asking = 0;
  #refusedAtMs = -Infinity;
  /** Most slots in use since the last look. */
  #most = 0;
  #isPlanned = false;
  #isClosed = false;
  readonly #exchanges = new Coalesced(() => this.#exchange());

  constructor(options: SlotSetTerms & SlotServices) {
    this.#options = options;
  }

  /** How many slots calls may use: in a loss, the share of this process, or what it had before. */
  get places(): number {
    if (this.limit === Infinity) return Infinity;
    const { store, clock, leastShare } = this.#options;
    if (store.decides) return Math.min(this.#held, this.#cap);
    const held = clock.monotonic() < this.#heldUntilMs ? this.#held : 0;
    const share = Math.max(leastShare, Math.floor(this.limit / store.processes));
    return Math.max(held, Math.min(this.limit, share));
  }

  get #part(): number {
    return this.#options.clock.monotonic() < this.#fairUntilMs ? this.#fair : Infinity;
  }

  get hasRoom(): boolean {
    return this.#options.demand().used < this.places;
  }

  /** Whether others have just been found to have the rest. */
  get isRefused(): boolean {
    return this.#options.clock.monotonic() < this.#refusedAtMs + againMs;
  }

  get isUnused(): boolean {
    const { used, waiting } = this.#options.demand();
    return this.#held === 0 && used === 0 && waiting === 0 && this.#asking === 0;
  }

  /** For a call without a slot. Resolves after one round trip; undefined: asking is in vain. */
  ask(): Promise<void> | undefined {
    if (this.limit === Infinity || !this.#options.store.decides) return undefined;
    if (this.isRefused || this.#held >= this.limit) return undefined;
    this.#asking += 1;
    return this.#exchanges.run().finally(() => {
      this.#asking -= 1;
    });
  }

  /** A call has ended: above its part, this process does not use its slot again. */
  leaving(): void {
    if (this.limit === Infinity || this.#held <= this.#part) return;
    this.#cap = Math.max(this.#part, this.#options.demand().used);
  }

  /** Calls that waited for a slot have been served. */
  left(): void {
    this.#most = Math.max(this.#most, this.#options.demand().used + 1);
    this.plan();
  }

  /** Gives back at once what no call uses: another process may need it for the same key. */
  giveBack(): void {
    const { used } = this.#options.demand();
    if (this.limit === Infinity || used >= this.#held) return;
    this.#most = used;
    void this.#exchanges.run();
  }

  /** Looks soon whether to ask for more, or to give back. */
  plan(): void {
    if (this.#isPlanned || this.#isClosed || this.limit === Infinity) return;
    this.#isPlanned = true;
    this.#options.clock.schedule(() => {
      this.#isPlanned = false;
      this.#look();
    }, againMs);
  }

  beat(): void {
    if (this.limit === Infinity || this.isUnused) return;
    // In a loss its share may have changed; the server hears what is held all the same.
    if (!this.#options.store.decides) this.#options.onChanged();
    void this.#exchanges.run();
  }

  close(): Promise<void> {
    this.#isClosed = true;
    return this.limit === Infinity || this.#held === 0 ? Promise.resolve() : this.#exchanges.run();
  }

  #look(): void {
    // In a loss the beat tells what is held.
    if (!this.#options.store.decides) return this.#options.onChanged();
    const { used, waiting } = this.#options.demand();
    const isLacking = waiting > 0 || used > this.#held;
    const isIdle = Math.max(used, Math.min(this.#most, this.#part)) < this.#held;
    if (isLacking || isIdle) void this.#exchanges.run();
    else if (used < this.#held) {
      this.#most = used;
      this.plan();
    }
  }

  /** Tells the store what it keeps, and takes more. */
  async #exchange(): Promise<void> {
    // What it gives back may let calls ask again, which then share the next exchange.
    await Promise.resolve();
    const { clock, store, demand, bound, onChanged } = this.#options;
    const { used, waiting } = demand();
    const { limit, isRefused } = this;
    const kept = Math.max(used, Math.min(this.#held, this.#most, this.#part, this.#cap));
    const held = this.#isClosed || !store.decides ? used : kept;
    this.#most = used;
    this.#cap = Infinity;
    const wanted = used + (this.#isClosed ? 0 : waiting + this.#asking) - held;
    const most = Math.min(wanted, limit - held, this.#part - held);
    const more = store.decides ? Math.max(0, most) : 0;
    const sentAtMs = clock.monotonic();
    if (store.decides && held < this.#held) {
      // No call may take what is about to be given back.
      this.#held = held;
      onChanged();
    }
    try {
      const { granted, fair } = await store.take({ bound, limit, held, more });
      this.#fair = fair;
      this.#fairUntilMs = clock.monotonic() + fairMs;
      this.#held = held + granted;
      this.#heldUntilMs = sentAtMs + store.lifeMs;
      // The calls that asked take them in a later turn.
      if (granted > 0) this.#most = this.#held;
      if (granted < more) this.#refusedAtMs = clock.monotonic();
    } catch {
      // Whether it decides is the store's to know.
      if (!isRefused) this.#refusedAtMs = clock.monotonic();
    }
    onChanged();
    const now = demand();
    if (now.waiting > 0 || now.used < this.#held) this.plan();
  }
}
