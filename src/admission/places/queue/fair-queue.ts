import type { CapacityClass } from "../../../domain/usage/usage.ts";
import { ProvisionedLane, type GuaranteedWaiting, type LaneTurn } from "./provisioned-lane.ts";

/** Who waits: what its turn depends on. */
export interface Waiting extends GuaranteedWaiting {
  readonly capacityClass: CapacityClass;
  readonly accountId: string;
  readonly tokens: number;
}

/** Tokens that an account may have served in its turn before the next one has its own. */
export const quantumTokens = 1_000;
/** A call takes a place as well, however small it is. */
export const leastCostTokens = 250;

interface Account<Item> {
  /** First come, first served. */
  readonly items: Set<Item>;
  spilledCount: number;
  /** Tokens that it may still have served in this turn. */
  credit: number;
  hadItsTurn: boolean;
}

/**
 * Those who wait for a pool. Provisioned ones are in front of all, in a lane of their own. The
 * others take turns by account: deficit round robin, with tokens as the cost, so that an
 * account gets no more by sending more. Each of the two lanes has the same limit.
 */
export class FairQueue<Item extends Waiting> {
  readonly #provisioned: ProvisionedLane<Item>;
  /** The account whose turn it is comes first. */
  readonly #turns = new Set<Account<Item>>();
  readonly #accounts = new Map<string, Account<Item>>();
  readonly #limit: () => number;
  #openCount = 0;
  #spilledCount = 0;
  /** Whose turn it is; nobody else's until it has gone. */
  #chosen: Item | undefined;

  constructor(limit: () => number, unitsOf: (keyId: string) => number) {
    this.#limit = limit;
    this.#provisioned = new ProvisionedLane(unitsOf);
  }

  count(capacityClass: CapacityClass): number {
    if (capacityClass === "provisioned") return this.#provisioned.size;
    if (capacityClass === "spillover") return this.#spilledCount;
    return this.#openCount - this.#spilledCount;
  }

  /** How many wait in front of who would come now, if all took their turns as they came. */
  countBefore(capacityClass: CapacityClass): number {
    const open = capacityClass === "provisioned" ? 0 : this.#openCount;
    return this.#provisioned.size + open;
  }

  /** Whether calls of a key within its guarantee wait. */
  hasProvisioned(keyId: string): boolean {
    return this.#provisioned.has(keyId);
  }

  /** Whether calls of an account without a guarantee wait. */
  hasOpen(accountId: string): boolean {
    return this.#accounts.has(accountId);
  }

  /** Returns who has to go for it, which may be the newcomer itself; undefined: all have room. */
  add(item: Item): Item | undefined {
    if (item.capacityClass === "provisioned") return this.#provisioned.add(item, this.#limit());
    let displaced: Item | undefined;
    if (this.#openCount >= this.#limit()) {
      displaced = this.#openCount === 0 ? undefined : this.#leastOf(item);
      if (displaced === undefined) return item;
      this.remove(displaced);
    }
    this.#addOpen(item);
    return displaced;
  }

  /** Who left without having been served, or was served for nothing. */
  remove(item: Item): boolean {
    if (this.#provisioned.remove(item)) return true;
    const account = this.#accounts.get(item.accountId);
    if (account === undefined || !account.items.delete(item)) return false;
    if (this.#chosen === item) this.#chosen = undefined;
    this.#openCount -= 1;
    if (item.capacityClass === "spillover") {
      this.#spilledCount -= 1;
      account.spilledCount -= 1;
    }
    if (account.items.size === 0) {
      this.#accounts.delete(item.accountId);
      this.#turns.delete(account);
    }
    return true;
  }

  /** Whose turn it is within guarantees, of those who may enter. */
  nextProvisioned(turn: LaneTurn<Item>): Item | undefined {
    return this.#provisioned.next(turn);
  }

  /** Whose turn it is among the others; the same one until it is served or removed. */
  firstOpen(): Item | undefined {
    if (this.#chosen !== undefined || this.#turns.size === 0) return this.#chosen;
    for (let turns = 0; ; turns += 1) {
      if (turns === this.#turns.size) this.#skipIdleRounds();
      const account = firstOf(this.#turns);
      const item = account && firstOf(account.items);
      if (account === undefined || item === undefined) return undefined;
      if (!account.hadItsTurn) {
        account.hadItsTurn = true;
        account.credit += quantumTokens;
      }
      if (costOf(item) <= account.credit) {
        this.#chosen = item;
        return item;
      }
      account.hadItsTurn = false;
      this.#turns.delete(account);
      this.#turns.add(account);
    }
  }

  /** The first for which something holds, whoever's turn it is. */
  findAnyOpen(holds: (item: Item) => boolean): Item | undefined {
    for (const { items } of this.#turns) {
      for (const item of items) if (holds(item)) return item;
    }
    return undefined;
  }

  /** The first of its account for which something holds, whoever's turn it is. */
  findOpen(holds: (item: Item) => boolean): Item | undefined {
    for (const { items } of this.#turns) {
      const item = firstOf(items);
      if (item !== undefined && holds(item)) return item;
    }
    return undefined;
  }

  /** It got its place: its account pays, and one that was let pass has its next turn last. */
  served(item: Item): void {
    const account = this.#accounts.get(item.accountId);
    const hasPassed = this.#chosen !== item;
    if (!this.remove(item) || account === undefined) return;
    if (item.capacityClass === "provisioned") return;
    account.credit -= costOf(item);
    if (hasPassed && this.#turns.delete(account)) this.#turns.add(account);
  }

  #addOpen(item: Item): void {
    let account = this.#accounts.get(item.accountId);
    if (account === undefined) {
      account = { items: new Set(), spilledCount: 0, credit: 0, hadItsTurn: false };
      this.#accounts.set(item.accountId, account);
      this.#turns.add(account);
    }
    account.items.add(item);
    this.#openCount += 1;
    if (item.capacityClass !== "spillover") return;
    this.#spilledCount += 1;
    account.spilledCount += 1;
  }

  /** A whole round served nobody: as many rounds as change nothing are had at once. */
  #skipIdleRounds(): void {
    let rounds = Infinity;
    for (const { items, credit } of this.#turns) {
      const item = firstOf(items);
      if (item === undefined) continue;
      rounds = Math.min(rounds, Math.ceil((costOf(item) - credit) / quantumTokens));
    }
    if (rounds === Infinity || rounds <= 1) return;
    for (const account of this.#turns) account.credit += (rounds - 1) * quantumTokens;
  }

  /**
   * Who goes when the lane is full: spilled calls before others, and of these the youngest of the
   * account that has most waiting. Undefined when nobody is less than the newcomer.
   */
  #leastOf(newcomer: Item): Item | undefined {
    const isSpilled = newcomer.capacityClass === "spillover";
    const isAboutSpilled = this.#spilledCount > 0;
    if (isSpilled && !isAboutSpilled) return undefined;
    const countOf = (account: Account<Item>): number =>
      isAboutSpilled ? account.spilledCount : account.items.size;
    let longest: Account<Item> | undefined;
    for (const account of this.#turns) {
      if (longest === undefined || countOf(account) > countOf(longest)) longest = account;
    }
    if (longest === undefined) return undefined;
    if (isSpilled === isAboutSpilled) {
      const own = this.#accounts.get(newcomer.accountId);
      if (countOf(longest) <= (own === undefined ? 0 : countOf(own)) + 1) return undefined;
    }
    let youngest: Item | undefined;
    for (const item of longest.items) {
      if (!isAboutSpilled || item.capacityClass === "spillover") youngest = item;
    }
    return youngest;
  }
}

function costOf({ tokens }: Waiting): number {
  return Math.max(tokens, leastCostTokens);
}

function firstOf<Item>(items: Set<Item>): Item | undefined {
  for (const item of items) return item;
  return undefined;
}
