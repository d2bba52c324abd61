import { longestGuaranteeSeconds, slotAt } from "../../../domain/limits/slots.ts";
import type { UsageWindow } from "../../../domain/limits/window.ts";
import type { PastAdmission } from "../../store.ts";
import { isTokenCount } from "./reservations.ts";

interface PastCharge {
  readonly slot: number;
  readonly requests: number;
  readonly tokens: number;
}

/**
 * What scopes were admitted for before this process began. It waits here until a scope is asked for:
 * only then is it known how much the scope may use, and so what it owes.
 */
export class PastUsage {
  readonly #byScope = new Map<string, PastCharge[]>();
  /** Slot from which none of it can count any more. */
  #endsAt = Number.NEGATIVE_INFINITY;

  add(admitted: readonly PastAdmission[], nowMs: number): void {
    const now = slotAt(nowMs);
    this.#endsAt = now + longestGuaranteeSeconds;
    for (const { scopeId, isGuarantee = false, ageMs, requests, tokens } of admitted) {
      if (!isTokenCount(tokens) || !isTokenCount(requests)) continue;
      const name = nameOf(scopeId, isGuarantee);
      let charges = this.#byScope.get(name);
      if (charges === undefined) this.#byScope.set(name, (charges = []));
      charges.push({ slot: Math.min(slotAt(nowMs - ageMs), now), requests, tokens });
    }
  }

  advance(slot: number): void {
    if (slot >= this.#endsAt) this.#byScope.clear();
  }

  /** Where the history of a scope begins; undefined: it has none. */
  firstSlot(scopeId: string, isGuarantee: boolean): number | undefined {
    if (this.#byScope.size === 0) return undefined;
    const charges = this.#byScope.get(nameOf(scopeId, isGuarantee));
    return charges?.reduce((first, { slot }) => Math.min(first, slot), Number.POSITIVE_INFINITY);
  }

  /** Charges a window, which stands at the first slot of the scope, second after second. */
  replay(scopeId: string, isGuarantee: boolean, window: UsageWindow): void {
    const charges = this.#byScope.get(nameOf(scopeId, isGuarantee)) ?? [];
    for (const { slot, requests, tokens } of charges.toSorted((a, b) => a.slot - b.slot)) {
      window.advance(slot);
      window.charge({ requests, tokens: 0 });
      window.chargeMore(tokens);
    }
  }

  forget(scopeId: string, isGuarantee: boolean): void {
    this.#byScope.delete(nameOf(scopeId, isGuarantee));
  }
}

/** A cap and a guarantee of one id count apart. */
function nameOf(scopeId: string, isGuarantee: boolean): string {
  return `${isGuarantee ? "guarantee" : "cap"} ${scopeId}`;
}
