import type { Kysely } from "kysely";
import type {
  Account,
  Application,
  StoredBudget,
  ManagementToken,
  Session,
  SignInLink,
  User,
} from "../entities.ts";
import type { AuditRecord } from "../audit.ts";
import type { Key, KeySecret } from "../../domain/keys/key.ts";
import type { Limits } from "../../domain/limits/plan.ts";
import type { PriceTable } from "../../domain/money/price.ts";
import type { OwnProcessRow } from "../process-row.ts";
import type { UsageRecord } from "../../domain/usage/usage.ts";
import type { RepriceRun } from "../costs.ts";
import type { StoredReply } from "../control-store.ts";
import type { HeldClaim, KeptReply, StoredResponse } from "../store.ts";

/** The value of a column; times are milliseconds since the epoch. */
export type SqlValue = string | number | Uint8Array | null;

/** Statements of one transaction. */
export type Queries = Kysely<Tables>;

/** An entity as a row: null for what it does not have. */
export type Row<Entity> = {
  -readonly [Column in keyof Entity]-?: undefined extends Entity[Column]
    ? Exclude<Entity[Column], undefined> | null
    : Entity[Column];
};

/** The same with other columns in place of some fields. */
type RowWith<Entity, Columns> = Omit<Row<Entity>, keyof Columns> & Columns;

/**
 * All tables, in camel case; the database has the same names in snake case. The schema documents
 * the columns.
 */
export interface Tables {
  accounts: AccountRow;
  erasedAccounts: { id: string; at: number };
  erasedEndUsers: { digest: string; at: number };
  applications: Row<Application>;
  keys: KeyColumns;
  secrets: Row<KeySecret>;
  budgets: BudgetRow;
  /** `endsAt`: of the period; null: never. */
  budgetSpend: {
    budgetId: string;
    periodId: string;
    endUser: string;
    process: string;
    endsAt: number | null;
    spentNano: number;
    unpricedCalls: number;
    changedEpoch: number;
  };
  budgetAlerts: AlertRow;
  epochs: { name: string; value: number };
  removedKeys: { changedEpoch: number; keyId: string };
  leftLimitScopes: Pick<KeyColumns, "limitScope" | "accountId" | "applicationId"> & {
    keyId: string;
    revokedAt: number;
  };
  users: UserRow;
  sessions: Row<Session>;
  signInLinks: SignInLink;
  managementTokens: TokenRow;
  replies: Row<StoredReply>;
  audit: AuditRow;
  /** At most one row; `place` is 1. */
  installation: {
    place: number;
    id: string;
    pepperMark: string | null;
    pepperSince: number | null;
  };
  callReplies: Row<KeptReply> & { bytes: number };
  /** Times by the clock of the database. */
  callClaims: Row<HeldClaim> & { requestDigest: string; doubts: number; askedAt: number };
  storedResponses: Row<StoredResponse> & { keyStart: number; bytes: number };
  callReplyShares: { accountId: string; bytes: number };
  /** `signedAt` by the clock of the database. */
  processes: Row<OwnProcessRow> & { signedAt: number };
  /** `targets`: JSON of those of a `PriceTable`. */
  priceTables: Omit<PriceTable, "targets"> & { targets: string };
  jobLocks: { job: string; holder: string; heldUntil: number };
  usage: UsageRow;
  repriceRuns: RepriceRun & { isDelivered: number };
  usageGroups: UsageGroupRow;
  usageSums: UsageSumRow;
  /** At most one row; `place` is 1. */
  eventCursor: { place: 1; position: number; holder: string; heldUntil: number };
  /** The time before which single calls, or the sums of hours, were removed. */
  usageHorizons: { step: "call" | "hour"; at: number };
}

/** Both set, or neither. */
export type LimitsColumns = Row<Partial<Limits>>;

export type AccountRow = Omit<RowWith<Account, { plans: string }>, "limits"> & LimitsColumns;

export type KeyColumns = Omit<
  RowWith<Key, { allowedModels: string | null; allowedNetworks: string | null }>,
  "application" | "environment" | "limits"
> &
  LimitsColumns & { changedEpoch: number };

export type BudgetRow = RowWith<StoredBudget, { alerts: string; eachEndUser: number }>;

/** One percentage of a limit that was reached. */
export interface AlertRow {
  budgetId: string;
  periodId: string;
  threshold: number;
  callSequence: number;
  at: number;
  mode: StoredBudget["mode"];
  limitNano: number;
  spentNano: number;
  isRearmed: number;
}

export type UserRow = Omit<Row<User>, "identity"> & {
  identityIssuer: string | null;
  identitySubject: string | null;
};

export type TokenRow = RowWith<ManagementToken, { scopes: string }>;

/** `sequence`: its place in the order of storing. */
export type UsageRow = RowWith<
  UsageRecord,
  {
    sequence: number;
    cacheWriteTokens: number;
    cacheWrite1hTokens: number;
    isStreamed: number;
    routing: string | null;
    mayBeBilledTwice: number;
    tags: string | null;
  }
>;

export type AuditRow = Omit<Row<AuditRecord>, "actor" | "subject" | "before" | "after"> & {
  actorKind: AuditRecord["actor"]["kind"];
  actorId: string | null;
  actorName: string;
  subjectType: string;
  subjectId: string;
  beforeFields: string | null;
  afterFields: string | null;
};

/** What calls are told apart by in sums. An absent target or code is empty. */
type UsageGroupRow = Pick<
  UsageRecord,
  | "environment"
  | "accountId"
  | "applicationId"
  | "keyId"
  | "model"
  | "dialect"
  | "capacityClass"
  | "outcome"
  | "status"
> & { id: number; target: string; code: string };

/** The sums of one group of calls. */
export interface UsageSum {
  calls: number;
  failedCalls: number;
  abandonedCalls: number;
  inputTokens: number;
  outputTokens: number;
  cachedInputTokens: number;
  cacheWriteTokens: number;
  estimatedTokens: number;
  unpricedCalls: number;
  /** In nano-USD; a number would not hold that of years. */
  costNano: bigint;
  /** Encoded by `domain/usage/latency-histogram.ts`. */
  durations: string;
  firstEvents: string;
}

/** The calls of a group in an hour or a day. */
interface UsageSumRow extends UsageSum {
  grain: "hour" | "day";
  at: number;
  groupId: number;
}

/** What a SQL dialect provides to the repositories: transactions, one at a time. */
export interface SqlConnection {
  /**
   * Reads one consistent state of the data, in any number of steps. Throws `StorageUnavailable`.
   */
  read<Result>(work: (queries: Queries) => Promise<Result>): Promise<Result>;
  /**
   * Runs a transaction; an error thrown by `work` rolls back. `work` must await only its
   * statements, which fail once it ended. Throws `StorageUnavailable`; statements also throw
   * `AlreadyExists` for a taken id or name and `StillInUse` for rows that others refer to.
   */
  change<Result>(work: (queries: Queries) => Promise<Result>): Promise<Result>;
}

/**
 * Changes that must not run side by side, on any gateway, because they read before they write: limits
 * on the number of keys, epochs, the chain of the audit, sums. Different lanes do not wait for each
 * other.
 */
export type Lane = "entities" | "usage" | "replies";
