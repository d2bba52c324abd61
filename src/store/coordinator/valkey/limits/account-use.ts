import { AgingMap } from "../../../../domain/limits/aging-map.ts";
import type { LimitScope } from "../../../../domain/limits/limit-scope.ts";
import { nameOf, type NamedScope } from "../../../../domain/limits/scope-use.ts";
import {
  countedSlots,
  guaranteeSlots,
  longestGuaranteeSeconds,
} from "../../../../domain/limits/slots.ts";
import type { LeaseAccount, LeaseId } from "../../leases/lease-account.ts";
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
  /** When Valkey last heard of the overrun, in this process's time. */
  heldAtMs: number;
  charged: number;
  /** Whether this worker has admitted it, and Valkey has not been told yet. */
  isAlone: boolean;
  /** Undefined: nothing is leased for its scopes. */
  readonly leaseAccount: LeaseAccount | undefined;
}

/** A window, and the limit beyond which its use is a debt. */
export interface KnownWindow {
  readonly name: NamedScope;
  readonly limit: number;
}

/** What this worker has charged in one window, by slot in its own time. */
export interface IncludedWindow extends KnownWindow {
  readonly debt: number;
  readonly amounts: Map<number, number>;
}

/** What Valkey is told once, however often it is sent. */
export interface Inclusion {
  readonly id: string;
  readonly windows: ReadonlyMap<string, IncludedWindow>;
  readonly calls: readonly OpenCall[];
}

/** Windows of one inclusion, for which other decisions wait. */
const mostWindows = 100;

/** What a worker knows about the limits of one account: of all keys with one hash tag. */
export class AccountUse {
  readonly tag: string;
  readonly calls = new Map<string, OpenCall>();
  /**
   * As Valkey told it first; empty: unknown. Another one that it tells later does not replace it, so
   * that the next request finds the loss.
   */
  epoch = "";
  /** The windows in which this worker has used anything that may count, by their keys. */
  readonly known: AgingMap<KnownWindow>;
  /** Charged by this worker alone, by the key of the window. */
  readonly alone = new Map<string, IncludedWindow>();
  /** To be sent in this order. */
  #sending: readonly Inclusion[] = [];
  /** Corrections that Valkey has not received. */
  #notes: (() => Promise<void>)[] = [];
  /** What this worker may admit without asking Valkey. */
  readonly leases = new Set<LeaseId>();
  /** When they were last demanded back. */
  recalledAtMs = Number.NEGATIVE_INFINITY;
  /** Set while Valkey is told all that. */
  bringing: Promise<void> | undefined;

  constructor(tag: string, nowMs: number) {
    this.tag = tag;
    this.known = new AgingMap(longestGuaranteeSeconds * 1_000, nowMs);
  }

  /** Whether Valkey has to be told something before it decides again. */
  get isBehind(): boolean {
    return this.#sending.length > 0 || this.alone.size > 0 || this.#notes.length > 0;
  }

  keep(note: () => Promise<void>): void {
    this.#notes.push(note);
  }

  /** Sends all kept corrections by `send`; keeps them when that fails. */
  async sendNotes(send: (note: () => Promise<void>) => Promise<void>): Promise<void> {
    const notes = this.#notes;
    this.#notes = [];
    try {
      await Promise.all(notes.map(send));
    } catch (error) {
      this.#notes.unshift(...notes);
      throw error;
    }
  }

  /** What to send next, again until `sent`. Later corrections of its calls are notes. */
  nextInclusion(newId: () => string): Inclusion | undefined {
    if (this.#sending.length === 0 && this.alone.size > 0) {
      const calls = [...this.calls.values()].filter(({ isAlone }) => isAlone);
      this.#send([{ id: newId(), windows: new Map(this.alone), calls }]);
    }
    return this.#sending[0];
  }

  /** Sends the epoch at least, so that Valkey tells whether it has lost what it knew. */
  verify(id: string): void {
    if (this.epoch === "" || this.#sending.length > 0 || this.alone.size > 0) return;
    this.#sending = [{ id, windows: new Map(), calls: [] }];
  }

  /**
   * Sends all that this worker has used, instead of what was to be sent, because Valkey lost it. The
   * windows of calls that still run go out last, together with these.
   */
  sendAll(newId: () => string, windows: Inclusion["windows"]): void {
    const calls = [...this.calls.values()];
    const ofCalls = new Set(calls.flatMap(({ scopes }) => windowsOf(scopes).keys));
    const others = [...windows].filter(([key]) => !ofCalls.has(key));
    const steps: Inclusion[] = [];
    for (let first = 0; first < others.length; first += mostWindows) {
      const some = new Map(others.slice(first, first + mostWindows));
      steps.push({ id: newId(), windows: some, calls: [] });
    }
    const rest = new Map([...windows].filter(([key]) => ofCalls.has(key)));
    if (calls.length > 0) steps.push({ id: newId(), windows: rest, calls });
    this.#send(steps);
  }

  #send(steps: readonly Inclusion[]): void {
    for (const call of steps.flatMap(({ calls }) => calls)) call.isAlone = false;
    // As they are now: what they use until it is sent is a correction of its own.
    this.#sending = steps.map((step) => ({
      ...step,
      calls: step.calls.map((call) => ({ ...call })),
    }));
    this.alone.clear();
  }

  /** Valkey has charged that; what replaced it meanwhile is still to be sent. */
  sent(inclusion: Inclusion, epoch: string): void {
    this.epoch ||= epoch;
    this.#sending = this.#sending.filter((each) => each !== inclusion);
  }

  /** Notes what Valkey has charged for this worker. */
  admitted(scopes: readonly LimitScope[], epoch: string): void {
    this.epoch ||= epoch;
    const { keys, scopes: ofWindows } = windowsOf(scopes);
    for (const [index, key] of keys.entries()) this.#know(key, ofWindows[index]);
  }

  #know(key: string, scope: LimitScope | undefined): void {
    if (scope === undefined || this.known.touch(key) !== undefined) return;
    this.known.set(key, { name: nameOf(scope), limit: heldTo(scope) });
  }

  /** Notes what this worker has charged, or corrected, by itself. */
  chargeAlone({ scopes, slot, ...amounts }: AloneCharge): void {
    const { keys, scopes: ofWindows } = windowsOf(scopes);
    for (const [index, scope] of ofWindows.entries()) {
      const key = keys[index];
      const amount = amounts[scope.unit];
      if (amount === 0 || key === undefined) continue;
      this.#know(key, scope);
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
