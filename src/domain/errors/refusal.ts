import type { Budget } from "../money/budget.ts";
import type { CallDialect } from "../usage/usage.ts";

/** Why a request got an error. Holds no part of its content. */
export interface Refusal {
  /** Request id, as in `x-request-id`. */
  readonly id: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly status: number;
  /** That of the answer, which a dialect may translate; undefined for a stream, whose was 200. */
  readonly callerStatus?: number | undefined;
  readonly dialect?: CallDialect | undefined;
  readonly code: string | null;
  /** The limit is in audit: the request was not refused. */
  readonly isAudited?: boolean;
  readonly explanation: RefusalExplanation;
}

export interface RefusalExplanation {
  /** The rule that applied, such as `tokens_per_minute`. */
  readonly rule: RefusalRule;
  /** One sentence for the operator. */
  readonly summary: string;
  /** Undefined if no key was recognised. */
  readonly keyId?: string;
  /** Public id of the secret sent, if it had the form of a key. */
  readonly publicId?: string;
  readonly accountId?: string;
  readonly application?: string;
  readonly environment?: string;
  /** The plan that sets the limits of the key, unless they are its own. */
  readonly plan?: string;
  /** Alias, if it is a configured model. */
  readonly model?: string;
  /** Path of the field at fault, such as `messages[0].role`. */
  readonly param?: string;
  readonly window?: RefusalWindow;
  /** Set when a budget of money had no room. */
  readonly budget?: RefusedBudget;
}

export const refusalRules = [
  "key_missing",
  "key_malformed",
  "key_unknown",
  "key_mismatch",
  "key_disabled",
  "application_disabled",
  "account_disabled",
  "key_revoked",
  "key_removed",
  "key_expired",
  "secret_ended",
  "other_environment",
  "network_not_allowed",
  "snapshot_stale",
  "plan_missing",
  "requests_per_minute",
  "tokens_per_minute",
  "request_too_large",
  "uncapped_output",
  "guarantee_used_up",
  "pool_busy",
  "queue_full",
  "queue_deadline",
  "ledger_full",
  "limits_unavailable",
  "budget_exceeded",
  "budgets_unavailable",
  "model_not_priced",
  "draining",
  "overloaded",
  "upstream",
  "hook",
  "not_permitted",
  "not_signed_in",
  "wrong_credentials",
  "wrong_origin",
  "wrong_csrf_token",
  "too_many_requests",
  "storage_unavailable",
  "single_sign_on_unavailable",
  "image_memory_full",
  "body_memory_full",
  "invalid_request",
  "model_unknown",
  "model_not_allowed",
  "model_kind",
  "context_window",
  "upstream_rejected",
  "answer_mismatch",
  "idempotency_key",
  "deadline",
  "internal_error",
] as const;

export type RefusalRule = (typeof refusalRules)[number];

/** The window of 60 seconds that was full. */
interface RefusalWindow {
  readonly scopeId: string;
  readonly limit: number;
  /** Tokens or requests counted or reserved at the time. */
  readonly used: number;
  /** Size of the request. */
  readonly requested: number;
  /** When the request would fit if nothing else came; undefined: never. */
  readonly freeAt: number | undefined;
}

/** A budget that refused, as it was then. Amounts are nano-USD. */
export interface RefusedBudget extends Pick<
  Budget,
  "id" | "model" | "period" | "timeZone" | "limitNano" | "setBy"
> {
  readonly scope: "account" | "application" | "key";
  readonly eachEndUser: boolean;
  readonly periodId: string;
  readonly spentNano: number;
  readonly reservedNano: number;
  /** The most that the request could have cost. */
  readonly requestNano: number;
  /** Milliseconds since the epoch; undefined: never. */
  readonly resetsAt: number | undefined;
}

/** Undefined if only calls under way fill the budget, or if the request alone would exceed it. */
export function exhaustedBudget(
  budget: RefusedBudget | undefined,
): Pick<RefusedBudget, "id" | "limitNano"> | undefined {
  if (budget === undefined) return undefined;
  const { id, limitNano, spentNano, requestNano } = budget;
  const isSpent = requestNano <= limitNano && spentNano + requestNano > limitNano;
  return isSpent ? { id, limitNano } : undefined;
}

export interface RefusalFilter {
  /** Of the request. */
  readonly id?: string | undefined;
  readonly keyId?: string | undefined;
  readonly accountId?: string | undefined;
}
