import type { LimitScope } from "../../../../domain/limits/limit-scope.ts";
import type { LimitState } from "../../../../domain/limits/limit-state.ts";
import { UsageWindow } from "../../../../domain/limits/window.ts";
import { slotMs } from "../../../../domain/limits/slots.ts";
import type { RefusedByLimit } from "../../../store.ts";
import type { GrantedLease } from "../../leases/lease-account.ts";
import { refusalFor } from "../../memory/refusals.ts";
import {
  firstOf,
  heldTo,
  stateOf,
  type Demand,
  type ScopeWindow,
} from "../../memory/scope-charge.ts";
import { listOf } from "../connection/list-of.ts";
import { slotsOf, type RequestWindows } from "./scope-parameters.ts";

/** What a script has decided. */
export type Decided =
  | {
      readonly is: "admitted";
      readonly slot: number;
      /** Of the account. */
      readonly epoch: string;
      readonly state: LimitState;
    }
  | { readonly is: "refused"; readonly refusal: RefusedByLimit }
  /** Leases of workers are in the way, and on their way back. */
  | { readonly is: "held" }
  /** The account's epoch is not the one that the worker knows. */
  | { readonly is: "lost" };

export interface AskedScopes {
  readonly scopes: readonly LimitScope[];
  readonly windows: RequestWindows;
  readonly demand: Demand;
  readonly overrun: number;
}

/** What a script has told of a window. */
interface ToldWindow {
  readonly debt: number;
  readonly overrun: number;
  /** Slots, each followed by its amount. */
  readonly amounts: readonly number[];
}

/**
 * Reads the reply of `acquire` or `count`. A refusal is explained from what the windows hold, as it
 * is for limits in memory.
 */
export function readDecision(reply: unknown, asked: AskedScopes, random: () => number): Decided {
  const [verdict, time, latest, epoch, ...told] = listOf(reply);
  const now = numberOf(time);
  const slot = numberOf(latest);
  switch (verdict) {
    case 0: {
      const charges = chargesOf(asked, told.map(admittedWindow), slot);
      const state = stateOf(firstOf(charges), charges, now);
      return { is: "admitted", slot, epoch: String(epoch), state };
    }
    case 1: {
      const charges = chargesOf(asked, told.map(refusedWindow), slot);
      const { demand, overrun } = asked;
      const refusal = refusalFor({ charges, demand, overrun, roomWaitMs: 0, now }, random);
      if (refusal === undefined) throw new TypeError("a refusal by Valkey has no reason");
      return { is: "refused", refusal };
    }
    case 2:
      return { is: "lost" };
    case 3:
      return { is: "held" };
    default:
      throw new TypeError("Valkey has not answered with a decision");
  }
}

/** A lease, with what is left apart from it. */
export type ChargedLease = Omit<GrantedLease, "id" | "account">;

/** Reads the reply of `lease`; undefined: there is none. */
export function readLease(reply: unknown, asked: AskedScopes): ChargedLease | undefined {
  const [verdict, requests, tokens, overrun, decided] = listOf(reply);
  if (verdict !== 0) return undefined;
  const [, time, latest, , ...told] = listOf(decided);
  const now = numberOf(time);
  const slot = numberOf(latest);
  const charges = chargesOf(asked, told.map(admittedWindow), slot);
  return {
    slot,
    // The server's time is told in whole milliseconds, rounded down.
    endsInMs: Math.min(slotMs, (slot + 1) * slotMs - now - 1),
    requests: numberOf(requests),
    tokens: numberOf(tokens),
    overrun: numberOf(overrun),
    state: stateOf(firstOf(charges), charges, now),
  };
}

function numberOf(value: unknown): number {
  if (typeof value !== "number") throw new TypeError("Valkey has not answered with a number");
  return value;
}

/** The whole sum stands in the newest slot that is used, which decides when all is free again. */
function admittedWindow(told: unknown): ToldWindow {
  const [sum, debt, newest] = listOf(told);
  return { debt: numberOf(debt), overrun: 0, amounts: [numberOf(newest), numberOf(sum)] };
}

function refusedWindow(told: unknown): ToldWindow {
  const [debt, overrun, ...amounts] = listOf(told).map(numberOf);
  return { debt: debt ?? 0, overrun: overrun ?? 0, amounts };
}

function chargesOf(
  { scopes, windows }: AskedScopes,
  told: readonly ToldWindow[],
  slot: number,
): readonly ScopeWindow[] {
  const filled: UsageWindow[] = [];
  return scopes.map((scope, index) => {
    const number = (windows.numbers[index] ?? 1) - 1;
    const window = (filled[number] ??= windowOf(scope, told[number], slot));
    window.holdTo(heldTo(scope));
    return { scope, window };
  });
}

function windowOf(scope: LimitScope, told: ToldWindow | undefined, slot: number): UsageWindow {
  const window = new UsageWindow(slot, slotsOf(scope));
  window.holdTo(heldTo(scope));
  const { debt = 0, overrun = 0, amounts = [] } = told ?? {};
  for (let index = 0; index + 1 < amounts.length; index += 2) {
    const amount = amounts[index + 1] ?? 0;
    window.include({ slot: amounts[index] ?? slot, amounts: [amount], debt: 0, limit: Infinity });
  }
  if (debt > 0) window.include({ slot, amounts: [], debt, limit: scope.limit });
  window.openOverrun(overrun);
  return window;
}
