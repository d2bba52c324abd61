import type { LimitScope } from "../../../domain/limits/limit-scope.ts";
import { nameOf, type NamedScope, type ScopeUse } from "../../../domain/limits/scope-use.ts";
import { longestGuaranteeSeconds, slotAt } from "../../../domain/limits/slots.ts";
import type { UsageWindow } from "../../../domain/limits/window.ts";
import type { PastAdmission } from "../../store.ts";
import { isTokenCount } from "../../../domain/limits/token-count.ts";

interface PastCharge {
  readonly slot: number;
  readonly amount: number;
}

interface PastScopeCharges {
  readonly scope: NamedScope;
  readonly charges: PastCharge[];
}

type PastScope = Pick<LimitScope, "id" | "unit" | "window">;

/**
 * What the previous process admitted, by scope. It is replayed when a scope is first used, because
 * only then is its limit known, and so its debt.
 */
export class PastUsage {
  readonly #byScope = new Map<string, PastScopeCharges>();
  /** Slot from which none of it counts. */
  #endsAt = Number.NEGATIVE_INFINITY;

  add(admitted: readonly PastAdmission[], nowMs: number): void {
    const now = slotAt(nowMs);
    this.#endsAt = now + longestGuaranteeSeconds;
    for (const { scopeId, isGuarantee = false, ageMs, requests, tokens } of admitted) {
      if (!isTokenCount(tokens) || !isTokenCount(requests)) continue;
      const slot = Math.min(slotAt(nowMs - ageMs), now);
      const seconds = isGuarantee ? longestGuaranteeSeconds : 0;
      this.#add({ id: scopeId, unit: "requests", seconds }, { slot, amount: requests });
      this.#add({ id: scopeId, unit: "tokens", seconds }, { slot, amount: tokens });
    }
  }

  advance(slot: number): void {
    if (slot >= this.#endsAt) this.#byScope.clear();
  }

  /** The first slot of a scope's history; undefined: it has none. */
  firstSlot(scope: PastScope): number | undefined {
    if (this.#byScope.size === 0) return undefined;
    const charges = this.#byScope.get(nameIn(scope))?.charges;
    return charges?.reduce((first, { slot }) => Math.min(first, slot), Number.POSITIVE_INFINITY);
  }

  /** Charges a window, which must be at the scope's first slot, slot by slot. */
  replay(scope: PastScope, window: UsageWindow): void {
    const { charges = [] } = this.#byScope.get(nameIn(scope)) ?? {};
    for (const { slot, amount } of charges.toSorted((a, b) => a.slot - b.slot)) {
      window.advance(slot);
      if (scope.unit === "requests") window.charge(amount);
      else window.chargeMore(amount);
    }
  }

  /** The use that was not replayed, of caps since a slot. Its debts are unknown. */
  *held(oldest: number): Iterable<ScopeUse> {
    for (const { scope, charges } of this.#byScope.values()) {
      for (const { slot, amount } of charges) {
        if (scope.seconds === 0 && slot < oldest) continue;
        yield { scope, slot, amounts: [amount], debt: 0, limit: Number.POSITIVE_INFINITY };
      }
    }
  }

  forget(scope: PastScope): void {
    this.#byScope.delete(nameIn(scope));
  }

  #add(scope: NamedScope, charge: PastCharge): void {
    const name = pastName(scope);
    const known = this.#byScope.get(name);
    if (known === undefined) this.#byScope.set(name, { scope, charges: [charge] });
    else known.charges.push(charge);
  }
}

function nameIn(scope: PastScope): string {
  return pastName(nameOf(scope));
}

/** The units of an id count separately, and so do a cap and a guarantee. */
function pastName({ id, unit, seconds }: NamedScope): string {
  return `${seconds === 0 ? "cap" : "guarantee"} ${unit} ${id}`;
}
