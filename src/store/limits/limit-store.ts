import type {
  CountedRequest,
  LimitScope,
  LimitState,
  LimitUnit,
} from "../../domain/limits/limit-scope.ts";
import type { BudgetScope } from "../../domain/money/budget.ts";

/**
 * Limits of calls, in any unit and window. Every backend passes `test/contracts/limit-store-contract.ts`.
 * An in-process backend may answer without a promise.
 */
export interface LimitStore {
  /**
   * Counts one request in all scopes of requests if no scope is full. A refusal changes nothing.
   */
  count(scopes: readonly LimitScope[]): CountDecision | Promise<CountDecision>;
  /** Reverts a counted request, once. */
  uncount(counted: CountedRequest): void | Promise<void>;
  /** Charges all scopes atomically. A refusal changes nothing. */
  acquire(request: LimitRequest): LimitDecision | Promise<LimitDecision>;
  /** Charges what a running call has used beyond its charge so far. Ignores unknown calls. */
  use(callId: string, tokens: number): void | Promise<void>;
  /**
   * Replaces a reservation by the actual use, once; ignores unknown calls. Use beyond the limit is
   * a debt, paid from what becomes free. An invalid count keeps the charge, and so does an unknown
   * cost.
   */
  settle(callId: string, tokens: number, costNano?: number): void | Promise<void>;
  /** Names the process in the charges of calls under budgets. */
  readonly process: string;
  /** Where a call counts in a budget: of end users there is a bounded number. */
  placeOf(scope: BudgetScope): BudgetScope;
}

/** The part that reserves tokens only, such as those of a pool. */
export type TokenLimits = Pick<LimitStore, "acquire" | "settle">;

export interface LimitRequest {
  /** Unique; `use` and `settle` refer to it. */
  readonly callId: string;
  /** Never empty. All scopes are charged or none, each in its unit. */
  readonly scopes: readonly LimitScope[];
  /** Tokens to reserve in every scope of tokens. */
  readonly tokens: number;
  /** The most that the call can use, when that exceeds `tokens`. */
  readonly mostTokens?: number | undefined;
  /** Set when the request is already counted: only tokens are charged. */
  readonly counted?: CountedRequest | undefined;
  /** Those that refuse, in the periods of the call's arrival. Undefined: it is under none. */
  readonly budgets?: readonly BudgetScope[] | undefined;
  /** What to reserve in every budget, in nano-USD. With 0 no budget refuses. */
  readonly reserveNano?: number | undefined;
}

export type CountDecision =
  ({ readonly isAdmitted: true; readonly counted: CountedRequest } & Audited) | RefusedByLimit;

export type LimitDecision =
  | ({
      readonly isAdmitted: true;
      /** The state of the first scope's id. */
      readonly state: LimitState;
    } & Audited)
  | RefusedByLimit;

export interface Audited {
  /** What limits in audit would have decided; undefined: the same. */
  readonly wouldRefuse?: RefusedByLimit | undefined;
}

/** A budget that had no room for a call, and what it had. */
export interface FullBudget {
  readonly scope: BudgetScope;
  readonly spentNano: number;
  readonly reservedNano: number;
  readonly requestNano: number;
}

export interface RefusedByLimit {
  readonly isAdmitted: false;
  /** Of money, that of a budget. */
  readonly scopeId: string;
  readonly dimension: LimitUnit | "money";
  /**
   * Set when money refuses: the budgets that have no room, the one that has room again last in
   * front. None: nobody knows what was spent.
   */
  readonly budgets?: readonly FullBudget[];
  /** Whether the successor of this process decides about budgets, on new connections. */
  readonly isElsewhere?: boolean;
  /** When the same request would fit if nothing else is admitted; undefined: never. */
  readonly freeAfterMs: number | undefined;
  /** Set when calls in flight could exceed their reservations by too many tokens. */
  readonly overrun?: { readonly limit: number; readonly used: number; readonly asked: number };
  /** The wait sent to the caller: `freeAfterMs` with jitter, so that retries spread out. */
  readonly retryAfterMs: number | undefined;
  /** The state of the id whose scope refused. */
  readonly state: LimitState;
  /** Tokens used beyond the limit and not paid off yet. */
  readonly debt: number;
  /** The part of the limit that this process grants while limits cannot be decided for all. */
  readonly share?: number;
}
