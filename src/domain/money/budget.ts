export const budgetPeriods = ["day", "week", "month", "total"] as const;

/** `week`: from Monday, as in ISO 8601. `total`: from the budget's creation, for ever. */
export type BudgetPeriod = (typeof budgetPeriods)[number];

export const budgetModes = ["warn", "refuse"] as const;

/** `warn`: alerts alone. `refuse`: calls beyond the limit are refused, too. */
export type BudgetMode = (typeof budgetModes)[number];

/** How much may be spent on the calls of an account, of one application or of one key, in each period. */
export interface Budget {
  readonly id: string;
  readonly accountId: string;
  /** Undefined: all applications of the account. */
  readonly applicationId: string | undefined;
  /** Undefined: all keys of the account or the application. */
  readonly keyId: string | undefined;
  /** Alias; undefined: all models. */
  readonly model: string | undefined;
  /** Whether each end user of these calls may spend the limit; who names nobody is not under it. */
  readonly eachEndUser?: boolean | undefined;
  readonly period: BudgetPeriod;
  /** IANA name; never changes. */
  readonly timeZone: string;
  readonly mode: BudgetMode;
  readonly limitNano: number;
  /** Who may change it. */
  readonly setBy: "operator" | "account_holder";
  /** Milliseconds since the epoch. A total counts the calls that arrive from then on. */
  readonly createdAt: number;
}

/** Whether so many percent of a limit are spent, exactly. */
export function isReached(
  { limitNano }: Pick<Budget, "limitNano">,
  threshold: number,
  spentNano: number,
): boolean {
  return BigInt(spentNano) * 100n >= BigInt(limitNano) * BigInt(threshold);
}

/** A period of a budget, told from the others by its id, such as `2026-11`, `2026-W48`, `2026-11-28`, `total`. */
export interface PeriodTime {
  readonly id: string;
  /** Milliseconds since the epoch. */
  readonly startsAt: number;
  /** `Infinity` for `total`. */
  readonly endsAt: number;
}

/** What is spent under a budget in one period. */
export interface PeriodSpend {
  readonly spentNano: number;
  /** Calls whose cost is not known. */
  readonly unpricedCalls: number;
}

/** A budget that a call is under, in the period of its arrival. */
export interface BudgetScope {
  readonly budget: Budget;
  readonly period: PeriodTime;
  /** Whose spend it is, as a digest, or `otherEndUsers`. Undefined: the budget is not for each end user. */
  readonly endUser?: string | undefined;
}

/** Most end users that a budget counts apart in a period. */
export const mostEndUsers = 10_000;
/** All further ones, which share one limit. */
export const otherEndUsers = "others";

/** How charges and stored spend name it. */
export function scopeIdOf({ budget, endUser }: Pick<BudgetScope, "budget" | "endUser">): string {
  return endUser === undefined ? budget.id : `${budget.id}/${endUser}`;
}

/** The reverse of `scopeIdOf`. */
export function partsOfScopeId(id: string): { budgetId: string; endUser: string | undefined } {
  const [budgetId = "", endUser] = id.split("/");
  return { budgetId, endUser };
}

/** Calls with the budgets that they were admitted under. */
export interface Charge {
  /** The gateway process that counts what they spend, by a random id. */
  readonly process: string;
  /** As of `scopeIdOf`. */
  readonly budgetIds: readonly string[];
}

/**
 * What the database knows was spent under a budget in one period, in nano-USD by the process whose
 * calls it was; the empty name stands for calls that no process counted.
 */
export interface StoredSpend {
  /** As of `scopeIdOf`. */
  readonly budgetId: string;
  readonly periodId: string;
  readonly byProcess: Readonly<Record<string, number>>;
}

/** Stored spend, from the control thread to the main one: all at first, then what has changed. */
export interface SpendNote {
  /** Of the newest change in it. A note with an earlier epoch has less. */
  readonly epoch: number;
  /** Whether earlier notes are void: it has all. So it is at first, each hour, and after a restore. */
  readonly isWhole: boolean;
  /** Of periods that are not over for long. A period in no note has no spend. */
  readonly spend: readonly StoredSpend[];
  /** False while calls of processes that ended may not be stored yet. */
  readonly isComplete: boolean;
  /** The ids, as in `Charge`, of the processes that may serve calls, this one included. */
  readonly processes: readonly string[];
  /** Of those that give no sign, and may serve calls if nobody can hear them. */
  readonly silent: readonly string[];
}
