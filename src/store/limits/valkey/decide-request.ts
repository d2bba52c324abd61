import type { LimitState } from "../../../domain/limits/limit-scope.ts";
import { countedSlotsOf, heldTo, overrunLimit } from "../decision.ts";
import type { Audited, RefusedByLimit } from "../limit-store.ts";
import type { Parameter } from "./client.ts";
import type { Demanded, OwnWindow } from "./own-windows.ts";
import type { Lease } from "./read-reply.ts";
import { keysOf, type Account } from "./reports.ts";
import type { RequestWindows } from "./scopes.ts";
import type { BudgetRequest } from "./server-budgets.ts";

/** A request as it is decided here or by the server. */
export interface Asked extends Demanded {
  readonly names: RequestWindows;
  readonly account: Account;
  readonly own: readonly OwnWindow[];
  /** Undefined: it is under no budget. */
  readonly money: BudgetRequest | undefined;
}

export type Admitted = { readonly slot: number; readonly state: LimitState } & Audited;
export type Outcome = Admitted | RefusedByLimit;

export function isRefused(outcome: Outcome): outcome is RefusedByLimit {
  return "isAdmitted" in outcome;
}

interface Terms {
  readonly process: string;
  readonly wish: Lease | undefined;
  /** A lease is at most one of so many parts of what is left. */
  readonly parts: number;
  readonly sentAtMs: number;
}

/** What `decideScript` takes. */
export function decideRequest(
  { account, own, demand, overrun, money }: Asked,
  { process, wish, parts, sentAtMs }: Terms,
): { readonly keys: readonly string[]; readonly parameters: readonly Parameter[] } {
  const { requests = 0, tokens = 0, overrun: more = 0 } = wish ?? {};
  const parameters: Parameter[] = [process, money?.keys.length ?? 0];
  parameters.push(demand.requests, demand.tokens, overrun);
  parameters.push(wish === undefined ? 0 : parts, requests, tokens, more);
  for (const of of own) {
    const { scope, window } = of;
    const sort = scope.unit === "requests" ? "r" : "t";
    parameters.push(countedSlotsOf(scope), sort, scope.isAudited === true ? 1 : 0);
    parameters.push(Math.max(0, window.overrun - more));
    parameters.push(...[scope.limit, heldTo(scope), overrunLimit(scope)].map(String));
    of.openToldAtMs = sentAtMs;
  }
  const keys = keysOf(account, own);
  if (money === undefined) return { keys, parameters };
  return { keys: keys.concat(money.keys), parameters: parameters.concat(money.parameters) };
}
