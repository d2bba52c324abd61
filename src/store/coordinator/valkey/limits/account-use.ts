import type { LimitScope } from "../../../../domain/limits/limit-scope.ts";
import { nameOf, type NamedScope } from "../../../../domain/limits/scope-use.ts";
import { countedSlots, guaranteeSlots } from "../../../../domain/limits/slots.ts";
import { heldTo } from "../../memory/scope-charge.ts";
import { windowsOf } from "./scope-parameters.ts";

/** A call of this worker that is not settled. */
export interface OpenCall {
  readonly callId: string;
  readonly account: AccountUse;
  readonly scopes: readonly LimitScope[];
  /** In this process's time. */
  readonly slot: number;
  readonly reserved: number;
  readonly overrun: number;
  charged: number;
  /** Whether this worker has admitted it, and Valkey has not been told yet. */
  isAlone: boolean;
}

/** What this worker has charged in one window, by slot in its own time. */
export interface IncludedWindow {
  readonly name: NamedScope;
  readonly limit: number;
  readonly debt: number;
  readonly amounts: Map<number, number>;
}

/** A window that Valkey has. */
export interface KnownWindow extends Pick<IncludedWindow, "name" | "limit"> {
  readonly epoch: string;
}

/** What Valkey is told once, however often it is sent. */
export interface Inclusion {
  readonly id: string;
  readonly windows: ReadonlyMap<string, IncludedWindow>;
  readonly calls: readonly OpenCall[];
}

/** What a worker knows about the limits of one account: of all keys with one hash tag. */
export class AccountUse {
  readonly tag: string;
  readonly calls = new Map<string, OpenCall>();
  /** By the key of the window, as Valkey has told them. */
  readonly known = new Map<string, KnownWindow>();
  /** Charged by this worker alone, by the key of the window. */
  readonly alone = new Map<string, IncludedWindow>();
  readonly #sending: Inclusion[] = [];
  /** Corrections that Valkey has not received. */
  #notes: (() => Promise<void>)[] = [];
  /** Set while Valkey is told all that. */
  bringing: Promise<void> | undefined;

  constructor(tag: string) {
    this.tag = tag;
  }

  /** Whether Valkey has to be told something before it decides again. */
  get isBehind(): boolean {
    return this.#sending.length > 0 || this.alone.size > 0 || this.#notes.length > 0;
  }

  epochOf(key: string): string {
    return this.known.get(key)?.epoch ?? "";
  }

  /** Notes what Valkey has told of a window. */
  know(key: string, epoch: string, { name, limit }: Pick<IncludedWindow, "name" | "limit">): void {
    if (this.epochOf(key) !== epoch) this.known.set(key, { epoch, name, limit });
  }

  keep(note: () => Promise<void>): void {
    this.#notes.push(note);
  }

  /** Sends all kept corrections; keeps them when that fails. */
  async sendNotes(): Promise<void> {
    const notes = this.#notes;
    this.#notes = [];
    try {
      await Promise.all(notes.map((note) => note()));
    } catch (error) {
      this.#notes.unshift(...notes);
      throw error;
    }
  }

  /** Prepares an inclusion; later corrections of its calls are notes. */
  send(id: string, windows: Inclusion["windows"], calls: readonly OpenCall[]): void {
    this.#sending.push({ id, windows, calls });
    for (const call of calls) call.isAlone = false;
  }

  /** What to send next, again until `sent`: what was lost first, then what was charged alone. */
  nextInclusion(newId: () => string): Inclusion | undefined {
    if (this.#sending.length === 0 && this.alone.size > 0) {
      const calls = [...this.calls.values()].filter(({ isAlone }) => isAlone);
      this.send(newId(), new Map(this.alone), calls);
      this.alone.clear();
    }
    return this.#sending[0];
  }

  /** Replaces the first inclusion, which had no effect, by one of more use and of all calls. */
  sendInstead(windows: Inclusion["windows"]): void {
    const replaced = this.#sending.shift();
    if (replaced === undefined) return;
    const calls = [...this.calls.values()];
    for (const call of calls) call.isAlone = false;
    this.#sending.unshift({ id: replaced.id, windows, calls });
  }

  sent(): void {
    this.#sending.shift();
  }

  /** Notes what this worker has charged, or corrected, by itself. */
  chargeAlone({ scopes, slot, ...amounts }: AloneCharge): void {
    const { keys, scopes: ofWindows } = windowsOf(scopes);
    for (const [index, scope] of ofWindows.entries()) {
      const key = keys[index];
      const amount = amounts[scope.unit];
      if (amount === 0 || key === undefined) continue;
      const window = this.alone.get(key) ?? emptyWindow(scope);
      this.alone.set(key, window);
      forgetOld(window, slot);
      window.amounts.set(slot, (window.amounts.get(slot) ?? 0) + amount);
    }
  }
}

export interface AloneCharge {
  readonly scopes: readonly LimitScope[];
  /** In this process's time. */
  readonly slot: number;
  readonly requests: number;
  readonly tokens: number;
}

/** In a long outage, only what counts is kept. */
function forgetOld({ name, amounts }: IncludedWindow, slot: number): void {
  const counted = name.seconds === 0 ? countedSlots : guaranteeSlots(name.seconds);
  if (amounts.size <= 2 * counted) return;
  for (const old of amounts.keys()) if (old <= slot - counted) amounts.delete(old);
}

function emptyWindow(scope: LimitScope): IncludedWindow {
  return { name: nameOf(scope), limit: heldTo(scope), debt: 0, amounts: new Map() };
}
