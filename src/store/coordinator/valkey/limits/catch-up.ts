import type { LimitScope } from "../../../../domain/limits/limit-scope.ts";
import { nameOf } from "../../../../domain/limits/scope-use.ts";
import { ValkeyUnavailable } from "../connection/valkey-errors.ts";
import type { AccountUse, IncludedWindow, Inclusion } from "./account-use.ts";
import { windowsOf } from "./scope-parameters.ts";
import type { Shadow } from "./shadow.ts";
import type { EpochOf, ValkeyLimits } from "./valkey-limits.ts";

export interface CatchUpParts {
  readonly valkey: ValkeyLimits;
  readonly shadow: Shadow;
  readonly onError: (error: unknown) => void;
}

/** Accounts about which Valkey is told at once. */
const mostBringing = 100;
/** Windows in one step, which other workers wait for. */
const mostVerified = 100;

/** Tells Valkey what a worker has admitted alone, and what Valkey has lost. */
export class CatchUp {
  readonly #parts: CatchUpParts;
  readonly #behind = new Set<AccountUse>();
  #inclusions = 0;

  constructor(parts: CatchUpParts) {
    this.#parts = parts;
  }

  /** Notes that Valkey does not know all about an account. */
  mark(account: AccountUse): void {
    this.#behind.add(account);
  }

  /** Tells Valkey about all accounts, as far as that succeeds now. */
  async all(): Promise<void> {
    const behind = [...this.#behind];
    for (let first = 0; first < behind.length; first += mostBringing) {
      const some = behind.slice(first, first + mostBringing);
      await Promise.all(some.map((account) => this.bring(account).catch(() => undefined)));
    }
  }

  /** Sends a correction; keeps it when Valkey has to be told other things first, or cannot be. */
  note(account: AccountUse, note: () => Promise<void>): void {
    const keep = (): void => {
      account.keep(note);
      this.#behind.add(account);
    };
    if (account.isBehind || account.bringing !== undefined) return keep();
    note().catch((error: unknown) => {
      if (error instanceof ValkeyUnavailable) keep();
      else this.#parts.onError(error);
    });
  }

  /** Prepares to ask Valkey whether it has lost what it knew of an account, and to restore that. */
  verify(account: AccountUse): void {
    const all = [...account.known];
    for (let first = 0; first < all.length; first += mostVerified) {
      const windows = new Map<string, IncludedWindow>();
      for (const [key, { name, limit }] of all.slice(first, first + mostVerified)) {
        windows.set(key, { name, limit, debt: 0, amounts: new Map() });
      }
      account.send(this.#newId(), windows, []);
      this.#behind.add(account);
    }
  }

  /**
   * Prepares to tell Valkey all that this worker has used of lost windows, unless that has happened
   * since they were asked for.
   */
  restore(account: AccountUse, lost: ReadonlyMap<string, LimitScope>, asked: EpochOf): void {
    const windows = new Map<string, IncludedWindow>();
    for (const [key, scope] of lost) {
      if (account.epochOf(key) !== asked(key)) continue;
      const all = this.#allUseOf(account, key, { name: nameOf(scope), limit: scope.limit });
      if (all !== undefined) windows.set(key, all);
    }
    if (windows.size > 0) account.send(this.#newId(), windows, [...account.calls.values()]);
    if (account.isBehind) this.#behind.add(account);
  }

  /** All that this worker has used of a window that Valkey has lost. */
  #allUseOf(
    account: AccountUse,
    key: string,
    { name, limit }: Pick<IncludedWindow, "name" | "limit">,
  ): IncludedWindow | undefined {
    account.known.delete(key);
    const use = this.#parts.shadow.usedIn(account.tag, name);
    if (use === undefined) return undefined;
    account.alone.delete(key);
    const used = use.amounts.map((amount, index) => [use.slot + index, amount] as const);
    return {
      name,
      limit,
      debt: use.debt,
      amounts: new Map(used.filter(([, amount]) => amount !== 0)),
    };
  }

  /** Resolves when Valkey knows all about an account. */
  async bring(account: AccountUse): Promise<void> {
    if (!account.isBehind && account.bringing === undefined) return;
    account.bringing ??= this.#tell(account).finally(() => (account.bringing = undefined));
    await account.bringing;
  }

  async #tell(account: AccountUse): Promise<void> {
    while (account.isBehind) {
      const sending = account.nextInclusion(() => this.#newId());
      if (sending === undefined) await account.sendNotes();
      else await this.#include(account, sending);
    }
    this.#behind.delete(account);
  }

  async #include(account: AccountUse, sending: Inclusion): Promise<void> {
    const { tag } = account;
    const { slot } = this.#parts.shadow;
    const epochOf: EpochOf = (key) => account.epochOf(key);
    const included = await this.#parts.valkey.include({ tag, inclusion: sending, slot, epochOf });
    if (included.is === "included") {
      let index = 0;
      for (const [key, window] of sending.windows) {
        account.know(key, included.epochs[index] ?? "", window);
        index += 1;
      }
      return account.sent();
    }
    this.#restoreInstead(account, sending, new Set(included.windows));
  }

  /** `lost`: the numbers of the windows, from 1. */
  #restoreInstead(account: AccountUse, sending: Inclusion, lost: ReadonlySet<number>): void {
    const windows = new Map<string, IncludedWindow>();
    let number = 0;
    for (const [key, window] of sending.windows) {
      number += 1;
      const all = lost.has(number) ? this.#allUseOf(account, key, window) : undefined;
      const more = all ?? window;
      const hasCalls = lost.has(number) && account.calls.size > 0;
      if (more.amounts.size > 0 || more.debt > 0 || hasCalls) windows.set(key, more);
    }
    if (windows.size > 0 || sending.calls.length > 0) account.sendInstead(windows);
    else account.sent();
  }

  #newId(): string {
    this.#inclusions += 1;
    return `${this.#parts.valkey.process}.${this.#inclusions}`;
  }
}

/** Scopes of the numbers, from 1, of lost windows, by their keys. */
export function lostScopes(
  scopes: readonly LimitScope[],
  numbers: readonly number[],
): ReadonlyMap<string, LimitScope> {
  const { keys, scopes: ofWindows } = windowsOf(scopes);
  const lost = new Map<string, LimitScope>();
  for (const number of numbers) {
    const [key, scope] = [keys[number - 1], ofWindows[number - 1]];
    if (key !== undefined && scope !== undefined) lost.set(key, scope);
  }
  return lost;
}
