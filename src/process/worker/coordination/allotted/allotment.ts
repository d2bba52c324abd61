import type { Clock } from "../../../../domain/clock.ts";
import {
  allotmentLifeMs,
  type AllotmentStore,
  type Allotment as Granted,
} from "../../../../store/allotments.ts";
import { partOf } from "../../part-of-config.ts";
import { ExchangePace } from "./exchange-pace.ts";
import { HopefulCalls } from "./hopeful-calls.ts";

/** What calls of this process hold of a bound, and what they wait for. */
export interface Demand {
  readonly used: number;
  /** Calls in queues. */
  readonly waiting: number;
  /** How many of these come before the calls of all processes that are not first. */
  readonly waitingFirst: number;
  readonly accounts: number;
}

export interface AllotmentOptions {
  readonly clock: Clock;
  readonly store: Pick<AllotmentStore, "exchange" | "isUp" | "rank">;
  readonly bound: string;
  /** Numbers of wishes, each greater than all before. */
  readonly nextSequence: () => number;
  readonly demand: () => Demand;
  /** There are more or fewer places than before. */
  readonly onChanged: () => void;
}

/** Longest wait of a call for places that other processes give back. */
const askMs = 50;
/** How long a place that is new or whose call has ended stays unused while others want places. */
const lingerMs = 20;
/** How long a place is wanted for a call that could not wait for it. */
const missedMs = 1_000;

/**
 * The places of one bound that this process may use without asking. There is one exchange at a
 * time, and what it gives back is not used from the moment at which the exchange begins.
 */
export class Allotment {
  limit = Infinity;
  readonly #options: AllotmentOptions;
  readonly #pace: ExchangePace;
  #places = 0;
  #fair = Infinity;
  #validUntil = Number.NEGATIVE_INFINITY;
  /** When places became unused last. */
  #unusedAt = Number.NEGATIVE_INFINITY;
  #isReturning = false;
  #isClosed = false;
  #asking = 0;
  #askingFirst = 0;
  #pausedUntil = Number.NEGATIVE_INFINITY;
  #missedUntil = Number.NEGATIVE_INFINITY;
  #isShort = false;
  /** Whether the store lost what it knew, and grants nothing until all have told that. */
  #isRestoring = false;
  /** Its part of what was free before that. */
  #spare = 0;
  /** When the last exchange began. */
  #askedAt = Number.NEGATIVE_INFINITY;
  /** Most places in use since the last beat. */
  #most = 0;
  #current: Promise<void> | undefined;
  #next: Promise<void> | undefined;
  readonly #hopeful: HopefulCalls;

  constructor(options: AllotmentOptions) {
    const { clock, store } = (this.#options = options);
    this.#pace = new ExchangePace({ clock, rank: () => store.rank });
    this.#hopeful = new HopefulCalls(clock);
  }

  /** How many places no other process may use. */
  get granted(): number {
    return this.#places;
  }

  /** How many places calls may use. */
  get places(): number {
    if (this.limit === Infinity) return Infinity;
    const own = Math.min(this.#places, this.#fair);
    if (!this.#isOut) return this.#isRestoring && this.#pace.isResting ? own + this.#spare : own;
    const isValid = this.#options.clock.monotonic() < this.#validUntil;
    return Math.max(isValid ? own : 0, partOf(this.limit, this.#options.store.rank));
  }

  get hasRoom(): boolean {
    return this.#options.demand().used < this.places;
  }

  /** Whether the last exchange granted less than was wanted. */
  get isShort(): boolean {
    return this.#isShort;
  }

  /** Whether a call just waited in vain. */
  get isPaused(): boolean {
    return this.#options.clock.monotonic() < this.#pausedUntil;
  }

  get isUnused(): boolean {
    const { used, waiting } = this.#options.demand();
    return this.#places === 0 && used === 0 && waiting === 0 && this.#asking === 0;
  }

  /**
   * For a call that found no place. Resolves when there is one, or the wait is over; undefined when
   * a wait is in vain. `isFirst`: it comes before calls without a guarantee.
   */
  ask(isFirst: boolean): Promise<void> | undefined {
    const { clock } = this.#options;
    if (this.limit === Infinity) return undefined;
    this.#missedUntil = clock.monotonic() + missedMs;
    const hasAll = this.#places >= this.limit && this.#fair === Infinity;
    if (this.isPaused || hasAll) return undefined;
    const first = isFirst ? 1 : 0;
    this.#asking += 1;
    this.#askingFirst += first;
    return this.#untilRoom().finally(() => {
      this.#asking -= 1;
      this.#askingFirst -= first;
    });
  }

  /** The store has become available, or unavailable. */
  storeChanged(): void {
    if (this.limit === Infinity) return;
    this.#options.onChanged();
    this.#pace.wake();
    this.#pace.inTurn(() => void this.beat());
  }

  /** Others want places. Without an unused one, it answers as soon as a call ends. */
  wanted(): void {
    if (this.limit === Infinity || this.#places === 0) return;
    this.#fair = Math.min(this.#fair, this.#places);
    if (this.#hasUnused) this.#pace.inTurn(() => this.#hasUnused && void this.exchange());
  }

  /** The store has lost what it knew. All tell it what they have before it gives more. */
  lost(): void {
    if (!this.isUnused) this.#pace.inTurn(() => void this.exchange());
  }

  /** Others have given back places. */
  free(): void {
    this.#pausedUntil = Number.NEGATIVE_INFINITY;
    // An exchange under way may just bring what calls wait for.
    void (this.#current ?? Promise.resolve()).then(() => {
      if (this.#waiting > 0 && this.#isShort) void this.exchange();
    });
  }

  /** A call of this process has ended. */
  left(): void {
    if (this.limit === Infinity) return;
    const { used } = this.#options.demand();
    this.#most = Math.max(this.#most, used + 1);
    if (this.#fair === Infinity || this.#places <= used) return;
    this.#unusedAt = this.#options.clock.monotonic();
    if (this.#places > this.#fair) void this.exchange();
    else this.#returnLater();
  }

  /** Prolongs the allotment, and gives back what was not needed since the last time. */
  beat(): Promise<void> {
    const { used } = this.#options.demand();
    const most = Math.max(this.#most, used);
    this.#most = used;
    if (this.limit === Infinity || this.isUnused || this.#isInVain) return Promise.resolve();
    this.#places = Math.min(this.#places, Math.max(used, Math.ceil(most * 1.25)));
    return this.exchange();
  }

  /** Asks again where calls wait, or calls that need no place were not counted yet. */
  look(): void {
    if (this.limit === Infinity || this.#current !== undefined || this.#isInVain) return;
    // What it may use without the store changes with time.
    if (this.#isOut) this.#options.onChanged();
    if (this.#waiting > 0 || this.#options.demand().used > this.#places) void this.exchange();
  }

  /** Gives back everything that no call uses. */
  close(): Promise<void> {
    this.#isClosed = true;
    return this.limit === Infinity ? Promise.resolve() : this.exchange();
  }

  /** An exchange that begins now, or after the one under way. */
  exchange(): Promise<void> {
    if (this.#pace.isResting && !this.#isClosed) return Promise.resolve();
    if (this.#current === undefined) {
      // Not before `#current` is set: what it gives back may let calls ask again.
      const run = Promise.resolve().then(() => this.#run());
      this.#current = run.finally(() => {
        this.#current = undefined;
        this.#options.onChanged();
        this.#hopeful.look();
      });
      return this.#current;
    }
    this.#next ??= this.#current.then(() => {
      this.#next = undefined;
      return this.exchange();
    });
    return this.#next;
  }

  get #waiting(): number {
    if (this.#isClosed) return 0;
    const { clock, demand } = this.#options;
    const missed = clock.monotonic() < this.#missedUntil ? 1 : 0;
    return Math.max(demand().waiting + this.#asking, missed);
  }

  get #hasUnused(): boolean {
    return this.#options.demand().used < this.#places;
  }

  /** Whether it just got too little, and has no news since. */
  get #isInVain(): boolean {
    return this.#isShort && this.#options.clock.monotonic() < this.#askedAt + this.#pace.gapMs;
  }

  get #isOut(): boolean {
    return this.#pace.hasFailed || !this.#options.store.isUp;
  }

  #returnLater(): void {
    if (this.#isReturning) return;
    this.#isReturning = true;
    this.#options.clock.schedule(() => {
      this.#isReturning = false;
      if (this.#fair === Infinity || this.#places <= this.#options.demand().used) return;
      if (this.#isLingering) this.#returnLater();
      else void this.exchange();
    }, lingerMs);
  }

  get #isLingering(): boolean {
    return this.#options.clock.monotonic() < this.#unusedAt + lingerMs;
  }

  async #run(): Promise<void> {
    const { clock, store, demand, bound, nextSequence } = this.#options;
    const { limit } = this;
    const { used, waitingFirst, accounts } = demand();
    const allotted = this.#places;
    const kept = Math.max(used, Math.min(this.#hold(used), limit));
    const wanted = Math.max(0, Math.min(used + this.#waiting, limit) - kept);
    const wantedFirst = Math.min(waitingFirst + this.#askingFirst, wanted);
    this.#places = kept;
    // No call may take what is about to be given back.
    this.#options.onChanged();
    const startedAt = (this.#askedAt = clock.monotonic());
    const wish = { bound, limit, used, kept, wanted, wantedFirst, accounts, allotted };
    try {
      const granted = await store.exchange({ ...wish, sequence: nextSequence() });
      this.#validUntil = startedAt + allotmentLifeMs;
      this.#pace.answered();
      this.#granted(granted, kept + wanted);
    } catch {
      this.#pace.failed();
    }
  }

  /** What it keeps: while others wait, nothing that no call uses or has just used. */
  #hold(used: number): number {
    if (this.#isClosed) return used;
    if (this.#isOut) return this.places;
    if (this.#fair === Infinity) return this.#places;
    return this.#isLingering ? Math.min(this.#places, this.#fair) : used;
  }

  #granted({ places, fair, isLost, free }: Granted, asked: number): void {
    this.#isRestoring = isLost;
    if (isLost) this.#pace.lost();
    else this.#spare = Math.floor(free / this.#options.store.rank.workers);
    if (places > this.#places) {
      // The calls that asked take them in a later turn.
      this.#unusedAt = this.#options.clock.monotonic();
      this.#returnLater();
    }
    this.#places = places;
    this.#fair = fair;
    this.#isShort = places < asked;
    if (!this.#isShort) this.#missedUntil = Number.NEGATIVE_INFINITY;
  }

  async #untilRoom(): Promise<void> {
    await this.exchange();
    if (this.hasRoom) return;
    if (!this.#isOut && (await this.#hopeful.wait(() => this.hasRoom, askMs))) return;
    this.#pausedUntil = this.#options.clock.monotonic() + this.#pace.gapMs;
  }
}
