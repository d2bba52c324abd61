import type { Clock } from "../clock.ts";
import type { CapacityClass } from "../usage/usage.ts";
import type { EndSignal } from "./end-signal.ts";

/**
 * What a turn got: its slots; none, but the next turn of its group may have some; none, nor has its
 * group; or none, nor has any turn of its class.
 */
export type Taking = "taken" | "next" | "skip" | "stop";

/** How a wait ended. `never`: the gate would never serve it. */
export type WaitEnd = "served" | "queue-full" | "deadline" | "left" | "never";

/** One that waits at a gate. What waits at several gates has a turn at each. */
export interface Turn {
  readonly gate: Gate;
  readonly capacityClass: CapacityClass;
  /** Groups take turns: accounts, or keys within their guarantees. */
  readonly group: string;
  /** In the queue, from 1; 0 before. */
  position: number;
  /** Undefined before it waits. */
  wait: Wait | undefined;
  /** Takes its slots, if they are free for it. */
  take(): Taking;
  /**
   * The wait is over. Called at one turn of a wait: the one that was served, or the one that was
   * refused and may succeed soonest.
   */
  ended(how: WaitEnd, waitedMs: number): void;
}

export interface GateOptions {
  readonly clock: Pick<Clock, "monotonic" | "schedule">;
  /** Most turns that wait within guarantees, and most others. */
  readonly limit: () => number;
  /** The shares of groups within guarantees: of two, one with twice the weight gets twice as much. */
  readonly shares?: Shares;
  /** Called before turns are served. */
  readonly onServe?: () => void;
}

interface Shares {
  readonly weightOf: (group: string) => number;
  /** How many slots a group holds. */
  readonly heldBy: (group: string) => number;
}

/** How often turns are served without an event. */
const pollMs = 1_000;
const leastPollMs = 5;

/**
 * Decides who waits for slots, in which turn, and who is served when some are free. Those who wait
 * know how many there are (`Turn.take`). Call `serve` after giving slots back.
 */
export class Gate {
  /** Turns within guarantees, which are served first. */
  readonly guaranteed: Lane;
  readonly open: Lane;
  readonly #options: GateOptions;
  /** When slots will be free though nothing happens, in monotonic milliseconds. */
  #freeAtMs = 0;
  #isServing = false;
  #hasToServeAgain = false;
  #cancelPoll: (() => void) | undefined;

  constructor(options: GateOptions) {
    this.#options = options;
    this.guaranteed = new Lane(options.shares);
    this.open = new Lane();
  }

  get size(): number {
    return this.guaranteed.size + this.open.size;
  }

  count(capacityClass: CapacityClass): number {
    if (capacityClass === "provisioned") return this.guaranteed.size;
    const { size, spilled } = this.open;
    return capacityClass === "spillover" ? spilled : size - spilled;
  }

  laneOf(capacityClass: CapacityClass): Lane {
    return capacityClass === "provisioned" ? this.guaranteed : this.open;
  }

  /** Waits at this gate alone, in the class on demand. */
  wait(own: Pick<Turn, "group" | "take" | "ended">, terms: Omit<WaitTerms, "clock">): void {
    const turn: Turn = {
      gate: this,
      capacityClass: "on-demand",
      position: 0,
      wait: undefined,
      ...own,
    };
    Wait.begin([turn], { ...terms, clock: this.#options.clock });
  }

  /** The turn takes effect with `serve`. */
  join(turn: Turn): void {
    const displaced = this.laneOf(turn.capacityClass).add(turn, this.#options.limit());
    displaced?.wait?.refused(displaced, "queue-full");
  }

  leave(turn: Turn): void {
    this.laneOf(turn.capacityClass).remove(turn);
  }

  /** Whether the turn still waits here. */
  has(turn: Turn): boolean {
    return this.laneOf(turn.capacityClass).groups.get(turn.group)?.has(turn) === true;
  }

  /** Ends the wait of a turn that has its slots. */
  served(turn: Turn): void {
    this.laneOf(turn.capacityClass).rotate(turn);
    turn.wait?.end(turn, "served");
  }

  /** Serves those that wait, after slots were given back or their number may have changed. */
  serve(): void {
    if (this.size === 0 && this.#cancelPoll === undefined) return;
    this.#hasToServeAgain = true;
    if (this.#isServing) return;
    this.#isServing = true;
    try {
      while (this.#hasToServeAgain && this.size > 0) {
        this.#hasToServeAgain = false;
        this.#freeAtMs = 0;
        this.#options.onServe?.();
        this.#serveLane(this.guaranteed);
        if (this.guaranteed.size === 0) this.#serveLane(this.open);
      }
    } finally {
      this.#isServing = false;
      this.#plan();
    }
  }

  /** Slots will be free then though nothing happens, unless turns are served before. */
  freeIn(waitMs: number): void {
    this.#freeAtMs = this.#options.clock.monotonic() + waitMs;
    if (!this.#isServing) this.#plan();
  }

  /** 0 or less if it is not known when slots will be free. */
  get freeInMs(): number {
    return this.#freeAtMs - this.#options.clock.monotonic();
  }

  #serveLane(lane: Lane): void {
    // A group that was served moves to the end of the map, where this loop meets it again.
    for (const [, turns] of lane.inTurn()) {
      for (const turn of turns) {
        const taking = turn.take();
        if (taking === "stop") return;
        if (taking === "taken") this.served(turn);
        if (taking === "taken" && lane === this.guaranteed) {
          // The order has changed.
          this.#hasToServeAgain = true;
          return;
        }
        if (taking !== "next") break;
      }
    }
  }

  #plan(): void {
    const { clock } = this.#options;
    this.#cancelPoll?.();
    this.#cancelPoll = undefined;
    if (this.size === 0) return;
    const { freeInMs } = this;
    const delayMs = freeInMs > 0 ? Math.min(Math.max(freeInMs, leastPollMs), pollMs) : pollMs;
    this.#cancelPoll = clock.schedule(() => this.serve(), delayMs);
  }
}

/**
 * Waiting turns whose groups take turns, so that a group gets no more by sending more: the one that
 * holds least for its weight comes first, or else the one that was served longest ago. Turns of a
 * group are in order of arrival.
 */
class Lane {
  readonly #shares: Shares | undefined;
  /** The one that was served longest ago first. */
  readonly #groups = new Map<string, Set<Turn>>();
  size = 0;
  /** How many of them are of the class `spillover`. */
  spilled = 0;

  constructor(shares?: Shares) {
    this.#shares = shares;
  }

  get groups(): ReadonlyMap<string, ReadonlySet<Turn>> {
    return this.#groups;
  }

  inTurn(): Iterable<[string, ReadonlySet<Turn>]> {
    const shares = this.#shares;
    if (shares === undefined) return this.#groups;
    const loadOf = (group: string): number => this.#loadOf(group, shares.heldBy(group));
    return [...this.#groups].sort(([one], [other]) => loadOf(one) - loadOf(other));
  }

  /** Returns the turn that is displaced, possibly the newcomer; undefined if all have room. */
  add(turn: Turn, limit: number): Turn | undefined {
    let displaced: Turn | undefined;
    if (this.size >= limit) {
      displaced = this.#displacedBy(turn);
      if (displaced === undefined) return turn;
      this.remove(displaced);
    }
    const turns = this.#groups.get(turn.group);
    if (turns === undefined) this.#groups.set(turn.group, new Set([turn]));
    else turns.add(turn);
    this.#count(turn, 1);
    return displaced;
  }

  remove(turn: Turn): boolean {
    const turns = this.#groups.get(turn.group);
    if (turns === undefined || !turns.delete(turn)) return false;
    if (turns.size === 0) this.#groups.delete(turn.group);
    this.#count(turn, -1);
    return true;
  }

  /** Removes a turn that was served; the others of its group come after those of all others. */
  rotate(turn: Turn): void {
    if (!this.remove(turn)) return;
    const rest = this.#groups.get(turn.group);
    if (rest === undefined) return;
    this.#groups.delete(turn.group);
    this.#groups.set(turn.group, rest);
  }

  /**
   * Of spilled turns if there are any, the youngest of the group with most waiting for its weight.
   * Undefined: the newcomer itself.
   */
  #displacedBy(newcomer: Turn): Turn | undefined {
    const isAboutSpilled = this.spilled > 0;
    if (isSpilled(newcomer) && !isAboutSpilled) return undefined;
    const isCounted = (turn: Turn): boolean => !isAboutSpilled || isSpilled(turn);
    const countIn = (turns: ReadonlySet<Turn> | undefined): number =>
      turns === undefined || !isAboutSpilled
        ? (turns?.size ?? 0)
        : [...turns].filter(isSpilled).length;
    const { group } = newcomer;
    const own = countIn(this.#groups.get(group)) + 1;
    let most = isCounted(newcomer) ? this.#loadOf(group, own) : 0;
    let largest: Iterable<Turn> = [];
    for (const [other, turns] of this.#groups) {
      const load = this.#loadOf(other, countIn(turns));
      if (load > most) [most, largest] = [load, turns];
    }
    return [...largest].findLast(isCounted);
  }

  #loadOf(group: string, count: number): number {
    const weight = this.#shares?.weightOf(group) ?? 1;
    return weight > 0 ? count / weight : Infinity;
  }

  #count(turn: Turn, more: number): void {
    this.size += more;
    if (isSpilled(turn)) this.spilled += more;
  }
}

function isSpilled({ capacityClass }: Turn): boolean {
  return capacityClass === "spillover";
}

export interface WaitTerms {
  readonly clock: Pick<Clock, "monotonic" | "schedule">;
  /** Ends the wait at once. */
  readonly signal: EndSignal;
  readonly waitMs: number;
}

/** A wait at the gates of all its turns, until one serves it. It ends once. */
export class Wait {
  readonly #turns: Set<Turn>;
  readonly #clock: WaitTerms["clock"];
  readonly #sinceMs: number;
  readonly #disarm: () => void;
  #refusal: { readonly turn: Turn; readonly how: "queue-full" | "never" } | undefined;

  private constructor(turns: readonly Turn[], { clock, signal, waitMs }: WaitTerms) {
    this.#turns = new Set(turns);
    this.#clock = clock;
    this.#sinceMs = clock.monotonic();
    const onAbort = (): void => this.#giveUp("left");
    const cancel = clock.schedule(() => this.#giveUp("deadline"), waitMs);
    signal.addEventListener("abort", onAbort, { once: true });
    this.#disarm = () => {
      cancel();
      signal.removeEventListener("abort", onAbort);
    };
  }

  /** The turns are told how it ended, possibly at once. */
  static begin(turns: readonly Turn[], terms: WaitTerms): void {
    const wait = new Wait(turns, terms);
    for (const turn of turns) {
      const { gate, capacityClass } = turn;
      turn.wait = wait;
      turn.position = 1 + (capacityClass === "provisioned" ? gate.guaranteed.size : gate.size);
    }
    for (const turn of turns) if (!wait.isOver) turn.gate.join(turn);
    for (const { gate } of turns) gate.serve();
  }

  get isOver(): boolean {
    return this.#turns.size === 0;
  }

  /** Ends it at this turn. */
  end(turn: Turn, how: WaitEnd): void {
    if (this.isOver) return;
    const turns = [...this.#turns];
    this.#turns.clear();
    this.#disarm();
    for (const each of turns) each.gate.leave(each);
    turn.ended(how, this.#clock.monotonic() - this.#sinceMs);
    // All others may have waited behind it.
    for (const { gate } of turns) gate.serve();
  }

  /** One gate no longer serves it; without another one, or its guarantee, it is over. */
  refused(turn: Turn, how: "queue-full" | "never"): void {
    if (!this.#turns.has(turn)) return;
    const known = this.#refusal;
    // Where the queue was full, a retry may succeed.
    const refusal = known?.how === "queue-full" ? known : { turn, how };
    this.#refusal = refusal;
    const isLast = this.#turns.size === 1 || turn.capacityClass === "provisioned";
    if (isLast) return this.end(refusal.turn, refusal.how);
    this.#turns.delete(turn);
    turn.gate.leave(turn);
    turn.gate.serve();
  }

  #giveUp(how: "left" | "deadline"): void {
    const [first] = this.#turns;
    if (first !== undefined) this.end(first, how);
  }
}

/** The gates whose turns wait for the same slots. */
export class WaitingGates {
  readonly #gates = new Set<Gate>();

  get size(): number {
    return this.#gates.size;
  }

  add(gate: Gate): void {
    this.#gates.add(gate);
  }

  /** Each serves once, in order of arrival; who still waits then comes again, behind the others. */
  serve(hasRoom: () => boolean = () => true): void {
    for (let count = this.#gates.size; count > 0 && hasRoom(); count -= 1) {
      const [gate] = this.#gates;
      if (gate === undefined) return;
      this.#gates.delete(gate);
      gate.serve();
    }
  }
}
