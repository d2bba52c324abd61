import type { CapacityClass } from "../../../domain/usage/usage.ts";
import { ProvisionedLane, type GuaranteedWaiting, type LaneTurn } from "./provisioned-lane.ts";

/** What the turn of a waiting call depends on. */
export interface Waiting extends GuaranteedWaiting {
  readonly capacityClass: CapacityClass;
  readonly accountId: string;
  readonly tokens: number;
}

/** Tokens by which the deficit of an account grows in its turn. */
export const quantumTokens = 1_000;
/** A small call takes a place too, so it costs at least this much. */
export const leastCostTokens = 250;

interface Account<Item> {
  /** Served in order of arrival. */
  readonly items: Set<Item>;
  spilledCount: number;
  /** Its deficit: tokens that it may still be served in this turn. */
  credit: number;
  hadItsTurn: boolean;
}

/**
 * The queue of a pool. Provisioned calls come first, in a lane of their own. The others take turns
 * by account: deficit round robin with tokens as the cost, so that an account gets no more by
 * sending more. Both lanes have the same limit.
 */
export class FairQueue<Item extends Waiting> {
  readonly #provisioned: ProvisionedLane<Item>;
  /** The first account has its turn. */
  readonly #turns = new Set<Account<Item>>();
  readonly #accounts = new Map<string, Account<Item>>();
  readonly #limit: () => number;
  #openCount = 0;
  #spilledCount = 0;
  /** The call whose turn it is, until it is served or removed. */
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

  /** How many calls would wait ahead of a newcomer, in order of arrival. */
  countBefore(capacityClass: CapacityClass): number {
    const open = capacityClass === "provisioned" ? 0 : this.#openCount;
    return this.#provisioned.size + open;
  }

  /** Accounts of which calls wait without a guarantee. */
  get accounts(): Iterable<string> {
    return this.#accounts.keys();
  }

  /** How many calls within their guarantees wait, by key. */
  get provisionedKeys(): ReadonlyMap<string, { readonly size: number }> {
    return this.#provisioned.keys;
  }

  /** Whether calls within the guarantee of a key wait. */
  hasProvisioned(keyId: string): boolean {
    return this.#provisioned.has(keyId);
  }

  /** Whether calls of an account wait without a guarantee. */
  hasOpen(accountId: string): boolean {
    return this.#accounts.has(accountId);
  }

  /** Returns the call that is displaced, possibly the newcomer; undefined if all have room. */
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

  /** Removes a call that leaves without being served. */
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

  /** The next call within a guarantee that may enter. */
  nextProvisioned(turn: LaneTurn<Item>): Item | undefined {
    return this.#provisioned.next(turn);
  }

  /** The call without a guarantee whose turn it is; the same one until it is served or removed. */
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

  /** The first call without a guarantee for which `holds` is true, in any turn. */
  findAnyOpen(holds: (item: Item) => boolean): Item | undefined {
    for (const { items } of this.#turns) {
      for (const item of items) if (holds(item)) return item;
    }
    return undefined;
  }

  /** As `findAnyOpen`, but only among the first calls of accounts. */
  findOpen(holds: (item: Item) => boolean): Item | undefined {
    for (const { items } of this.#turns) {
      const item = firstOf(items);
      if (item !== undefined && holds(item)) return item;
    }
    return undefined;
  }

  /** The call got a place: its account pays, and goes to the end if it was served out of turn. */
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

  /** After a round that served no call, the further rounds that would serve none are skipped. */
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
   * The call to displace when the lane is full: spilled calls before others, and of these the
   * youngest of the account with most waiting. Undefined when the newcomer itself is displaced.
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
