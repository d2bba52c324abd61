import type { Kysely } from "kysely";
import type { Role } from "../../domain/accounts/user.ts";
import type { AuditEntry } from "../../domain/audit/audit.ts";
import type { CallOutcome, CapacityClass, UsageSource } from "../../domain/usage/usage.ts";

/** The value of a column; times are milliseconds since the epoch. */
export type SqlValue = string | number | Uint8Array | null;

/** Statements of one transaction. */
export type Queries = Kysely<Tables>;

/**
 * All tables, in camel case; the database has the same names in snake case. The migrations document
 * the columns.
 */
export interface Tables {
  accounts: AccountRow;
  erasedAccounts: { id: string; at: number };
  applications: ApplicationRow;
  keys: KeyColumns;
  secrets: SecretRow;
  epochs: { name: string; value: number };
  removedKeys: RemovedKeyRow;
  leftLimitScopes: LeftLimitScopeRow;
  users: UserRow;
  sessions: SessionRow;
  managementTokens: TokenRow;
  replies: ReplyRow;
  audit: AuditRow;
  installation: InstallationRow;
  callReplies: CallReplyRow;
  callClaims: CallClaimRow;
  callRepliesSum: { bytes: number };
  callReplyShares: { accountId: string; bytes: number };
  processes: ProcessRow;
  usage: UsageRow;
  usageGroups: UsageGroupRow;
  usageSums: UsageSumRow;
  eventCursor: EventCursorRow;
  /** The time before which single calls, or the sums of hours, were removed. */
  usageHorizons: { step: "call" | "hour"; at: number };
}

/** Times by the clock of the database. */
export interface CallClaimRow {
  id: string;
  holder: string;
  requestDigest: string;
  /** How often other calls asked for it since its holder confirmed it. */
  doubts: number;
  /** When it was claimed, or the last doubt was counted. */
  askedAt: number;
}

/** See `ProcessFacts`. */
export interface ProcessRow {
  id: string;
  name: string;
  number: number;
  version: string;
  startedAt: number;
  configuredAt: number;
  configDigest: string | null;
  limitsDigest: string | null;
  pepperMarks: string | null;
  keysEpoch: number | null;
  adminUrl: string;
  notReady: string | null;
  degraded: string | null;
  /** By the clock of the database. */
  signedAt: number;
}

/** Both set, or neither. */
export interface LimitsColumns {
  requestsPerMinute: number | null;
  tokensPerMinute: number | null;
}

export interface AccountRow extends LimitsColumns {
  id: string;
  name: string;
  note: string;
  plans: string;
  maxKeys: number;
  createdAt: number;
  disabledAt: number | null;
  revision: number;
}

export interface ApplicationRow {
  id: string;
  accountId: string;
  environment: string;
  name: string;
  note: string;
  createdAt: number;
  disabledAt: number | null;
  disabledBy: Role | null;
  revision: number;
}

export interface KeyColumns extends LimitsColumns {
  id: string;
  applicationId: string;
  accountId: string;
  plan: string;
  limitScope: string;
  provisionedUnits: number;
  provisionedPool: string | null;
  allowedModels: string | null;
  allowedNetworks: string | null;
  name: string;
  note: string;
  createdAt: number;
  expiresAt: number | null;
  disabledAt: number | null;
  disabledBy: Role | null;
  revokedAt: number | null;
  revision: number;
  changedEpoch: number;
}

export interface SecretRow {
  publicId: string;
  keyId: string;
  digest: Uint8Array;
  pepper: string | null;
  createdAt: number;
  expiresAt: number | null;
  lastUsedAt: number | null;
}

interface RemovedKeyRow {
  changedEpoch: number;
  keyId: string;
}

interface LeftLimitScopeRow {
  keyId: string;
  limitScope: string;
  accountId: string;
  applicationId: string;
  revokedAt: number;
}

export interface UserRow {
  id: string;
  email: string;
  name: string;
  role: Role;
  accountId: string | null;
  passwordHash: string | null;
  identityIssuer: string | null;
  identitySubject: string | null;
  createdAt: number;
  disabledAt: number | null;
  lastSignInAt: number | null;
  revision: number;
}

interface SessionRow {
  id: string;
  userId: string;
  createdAt: number;
  lastSeenAt: number;
  expiresAt: number;
}

export interface TokenRow {
  id: string;
  userId: string;
  name: string;
  publicId: string;
  parentId: string | null;
  digest: Uint8Array;
  pepper: string | null;
  scopes: string;
  createdAt: number;
  expiresAt: number;
  lastUsedAt: number | null;
  revokedAt: number | null;
}

interface ReplyRow {
  id: string;
  requestDigest: string;
  status: number;
  body: Uint8Array | null;
  createdAt: number;
  shownUntil: number;
}

export interface AuditRow {
  sequence: number;
  at: number;
  actorKind: AuditEntry["actor"]["kind"];
  actorId: string | null;
  actorName: string;
  address: string | null;
  requestId: string | null;
  action: string;
  subjectType: string;
  subjectId: string;
  accountId: string | null;
  beforeFields: string | null;
  afterFields: string | null;
  previousDigest: string;
  digest: string;
}

/** At most one row; `place` is 1. */
interface InstallationRow {
  place: number;
  id: string;
  pepperMark: string | null;
  pepperSince: number | null;
}

interface CallReplyRow {
  id: string;
  accountId: string;
  requestDigest: string;
  keptAt: number;
  bytes: number;
  body: Uint8Array | null;
}

export interface UsageRow {
  /** Its place in the order of storing. */
  sequence: number;
  id: string;
  startedAt: number;
  environment: string;
  accountId: string;
  applicationId: string;
  application: string;
  keyId: string;
  model: string;
  target: string | null;
  capacityClass: CapacityClass;
  inputTokens: number;
  outputTokens: number;
  cachedInputTokens: number;
  usageSource: UsageSource;
  outcome: CallOutcome;
  status: number;
  code: string | null;
  isStreamed: number;
  attempts: number;
  firstEventMs: number | null;
  durationMs: number;
  routing: string | null;
  mayBeBilledTwice: number;
  reservedTokens: number | null;
  cacheWriteTokens: number;
}

/** Up to where calls were delivered to the receiver of events. At most one row. */
interface EventCursorRow {
  place: 1;
  /** `sequence` of the last call. */
  position: number;
  /** The gateway that delivers, and until when no other does. */
  holder: string;
  heldUntil: number;
}

/** What calls are told apart by in sums. */
interface UsageGroupRow {
  id: number;
  environment: string;
  accountId: string;
  applicationId: string;
  keyId: string;
  model: string;
  /** Empty: no target was tried. */
  target: string;
  capacityClass: CapacityClass;
  outcome: CallOutcome;
  status: number;
  /** Empty: none. */
  code: string;
}

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
