import type { LimitScope, LimitUnit } from "../../../domain/limits/limit-scope.ts";
import { longestGuaranteeSeconds, slotAt } from "../../../domain/limits/slots.ts";
import type { UsageWindow } from "../../../domain/limits/window.ts";
import type { PastAdmission } from "../../store.ts";
import { isTokenCount } from "./reservations.ts";

interface PastCharge {
  readonly slot: number;
  readonly amount: number;
}

type PastScope = Pick<LimitScope, "id" | "unit" | "window">;

/**
 * What the previous process admitted, by scope. It is replayed when a scope is first used, because
 * only then is its limit known, and so its debt.
 */
export class PastUsage {
  readonly #byScope = new Map<string, PastCharge[]>();
  /** Slot from which none of it counts. */
  #endsAt = Number.NEGATIVE_INFINITY;

  add(admitted: readonly PastAdmission[], nowMs: number): void {
    const now = slotAt(nowMs);
    this.#endsAt = now + longestGuaranteeSeconds;
    for (const { scopeId, isGuarantee = false, ageMs, requests, tokens } of admitted) {
      if (!isTokenCount(tokens) || !isTokenCount(requests)) continue;
      const slot = Math.min(slotAt(nowMs - ageMs), now);
      this.#add(nameOf(scopeId, "requests", isGuarantee), { slot, amount: requests });
      this.#add(nameOf(scopeId, "tokens", isGuarantee), { slot, amount: tokens });
    }
  }

  advance(slot: number): void {
    if (slot >= this.#endsAt) this.#byScope.clear();
  }

  /** The first slot of a scope's history; undefined: it has none. */
  firstSlot(scope: PastScope): number | undefined {
    if (this.#byScope.size === 0) return undefined;
    const charges = this.#byScope.get(nameIn(scope));
    return charges?.reduce((first, { slot }) => Math.min(first, slot), Number.POSITIVE_INFINITY);
  }

  /** Charges a window, which must be at the scope's first slot, slot by slot. */
  replay(scope: PastScope, window: UsageWindow): void {
    const charges = this.#byScope.get(nameIn(scope)) ?? [];
    for (const { slot, amount } of charges.toSorted((a, b) => a.slot - b.slot)) {
      window.advance(slot);
      if (scope.unit === "requests") window.charge(amount);
      else window.chargeMore(amount);
    }
  }

  forget(scope: PastScope): void {
    this.#byScope.delete(nameIn(scope));
  }

  #add(name: string, charge: PastCharge): void {
    const charges = this.#byScope.get(name);
    if (charges === undefined) this.#byScope.set(name, [charge]);
    else charges.push(charge);
  }
}

function nameIn({ id, unit, window }: PastScope): string {
  return nameOf(id, unit, window !== "minute");
}

/** Units count separately, and so do a cap and a guarantee of the same id. */
function nameOf(scopeId: string, unit: LimitUnit, isGuarantee: boolean): string {
  return `${isGuarantee ? "guarantee" : "cap"} ${unit} ${scopeId}`;
}
