import { ValkeyUnavailable } from "../connection/valkey-errors.ts";
import type { AccountUse, IncludedWindow, Inclusion, KnownWindow } from "./account-use.ts";
import type { Shadow } from "./shadow.ts";
import type { ValkeyLimits } from "./valkey-limits.ts";

export interface CatchUpParts {
  readonly valkey: ValkeyLimits;
  readonly shadow: Shadow;
  readonly onError: (error: unknown) => void;
  /** Called before an account is restored: Valkey has lost its leases. */
  readonly forgetLeases: (account: AccountUse) => void;
}

/** Accounts about which Valkey is told at once. */
const mostBringing = 100;

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
    account.verify(this.#newId());
    if (account.isBehind) this.#behind.add(account);
  }

  /**
   * Prepares to tell Valkey all that this worker has used, because it does not know the epoch
   * `asked` any more; unless that has happened since.
   */
  restore(account: AccountUse, asked: string): void {
    if (account.epoch !== asked) return;
    account.epoch = "";
    this.#parts.forgetLeases(account);
    const windows = new Map<string, IncludedWindow>();
    for (const [key, window] of account.known.entries()) {
      const use = this.#useOf(account, window);
      if (use !== undefined) windows.set(key, use);
    }
    account.sendAll(() => this.#newId(), windows);
    if (account.isBehind) this.#behind.add(account);
  }

  #useOf({ tag }: AccountUse, { name, limit }: KnownWindow): IncludedWindow | undefined {
    const use = this.#parts.shadow.usedIn(tag, name);
    if (use === undefined) return undefined;
    const used = use.amounts.map((amount, index) => [use.slot + index, amount] as const);
    const amounts = new Map(used.filter(([, amount]) => amount !== 0));
    return { name, limit, debt: use.debt, amounts };
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
      if (sending === undefined) {
        await account.sendNotes((note) => this.#unlessWrong(note, () => undefined));
      } else {
        const drop = (): void => account.sent(sending, "");
        await this.#unlessWrong(() => this.#include(account, sending), drop);
      }
    }
    this.#behind.delete(account);
  }

  /** What the server refuses as wrong would be refused for ever: it is dropped, and reported. */
  async #unlessWrong(send: () => Promise<void>, drop: () => void): Promise<void> {
    try {
      await send();
    } catch (error) {
      if (error instanceof ValkeyUnavailable) throw error;
      this.#parts.onError(error);
      drop();
    }
  }

  async #include(account: AccountUse, inclusion: Inclusion): Promise<void> {
    const { tag, epoch } = account;
    const { slot } = this.#parts.shadow;
    const included = await this.#parts.valkey.include({ tag, inclusion, slot }, epoch);
    if (included.is === "lost") return this.restore(account, epoch);
    account.sent(inclusion, included.epoch);
  }

  #newId(): string {
    this.#inclusions += 1;
    return `${this.#parts.valkey.process}.${this.#inclusions}`;
  }
}
