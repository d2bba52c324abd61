import type { Key, KeySecret } from "../domain/keys/key.ts";
import type { PepperedDigest } from "../domain/keys/peppers.ts";
import type { Limits } from "../domain/limits/plan.ts";
import type { Budget } from "../domain/money/budget.ts";
import type { PriceTable } from "../domain/money/price.ts";
import type { RepriceRun } from "./costs.ts";
import type { UsageRecord } from "../domain/usage/usage.ts";

/**
 * The keys that authentication uses. Every backend passes `test/contracts/key-store-contract.ts`.
 */
export interface KeyStore {
  /** Returns keys changed since an epoch, at most `limit`, oldest change first. 0: all keys. */
  loadKeys(since: number, limit: number): Promise<KeyChanges>;
  /** Records when secrets were last used; a time never moves backwards. */
  recordLastUse(uses: ReadonlyMap<string, number>): Promise<void>;
  /** Replaces a secret's digest by one under another pepper, unless it has changed meanwhile. */
  renewDigest(secret: RenewedSecret): Promise<void>;
}

export interface RenewedSecret {
  readonly publicId: string;
  /** The stored digest, under an older pepper. */
  readonly stored: Uint8Array;
  /** The digest of the same text under the first pepper. */
  readonly renewed: PepperedDigest;
}

export interface KeyChanges {
  readonly changes: readonly KeyChange[];
  /** The `since` of the next load. */
  readonly epoch: number;
  /** Whether there are further changes after this epoch. */
  readonly hasMore: boolean;
  /** Set if the database is unavailable, and this was known so long ago. */
  readonly ageMs?: number | undefined;
}

export interface KeyChange {
  readonly keyId: string;
  /** Undefined when the key, its application or its account is revoked or disabled. */
  readonly live: LiveKey | undefined;
  /** Set for a key that may not be used; undefined when it was removed. */
  readonly ended?: EndedKey | undefined;
}

export interface LiveKey {
  readonly key: Key;
  /** The limits that all keys of the account share. */
  readonly accountLimits?: Limits | undefined;
  /** Those of mode `refuse` that its calls can be under; undefined: none. */
  readonly budgets?: readonly Budget[] | undefined;
  readonly secrets: readonly KeySecret[];
}

/** Why and since when a key may not be used; only explanations use it. */
export interface EndedKey {
  readonly reason: KeyEndReason;
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly key: Key;
  /** Secrets by which explanations find the key; empty when it ended more than a day ago. */
  readonly secrets: readonly KeySecret[];
}

export type KeyEndReason =
  "key_revoked" | "key_disabled" | "application_disabled" | "account_disabled";

/** One live secret, as authentication finds it. */
export interface StoredSecret {
  readonly key: Key;
  readonly accountLimits?: Limits | undefined;
  readonly budgets?: readonly Budget[] | undefined;
  readonly secret: KeySecret;
}

/** Writes the ledger. Every backend passes `test/contracts/usage-store-contract.ts`. */
export interface UsageStore {
  /**
   * Writes all records and their sums in one transaction. Idempotent: a record whose id is
   * stored is skipped. Throws `RefusedRows` for invalid data, `StorageUnavailable` for transient
   * failures.
   */
  insert(records: readonly UsageRecord[]): Promise<void>;
  /** Removes at most `limit` rows older than the given times; returns how many. */
  prune(limits: UsageRetention, limit: number): Promise<number>;
  /** Removes at most `limit` rows of an account; returns how many. */
  erase(accountId: string, limit: number): Promise<number>;
  /**
   * Takes end users out of the calls that arrived before a time, in steps, and out of those that are
   * stored later; returns out of how many. The sums stay. Nothing of the names is then left in files of
   * the database.
   */
  eraseEndUsers(erased: ErasedEndUsers): Promise<number>;
}

export interface ErasedEndUsers {
  readonly accountId: string;
  /** As calls have them. */
  readonly endUsers: readonly string[];
  /** Milliseconds since the epoch. */
  readonly before: number;
}

/** Calls in the order in which they were stored, for one receiver, which has each at least once. */
export interface StoredCalls {
  /**
   * The calls after the last that was confirmed; undefined if there are none, or while another
   * gateway delivers them. The first time ever, it begins with what is stored from then on. Throws
   * `StorageUnavailable`.
   */
  next(request: StoredCallsRequest): Promise<CallBatch | undefined>;
  /** The alerts that were noted when some of these calls were stored. */
  alertsOf(callIds: readonly string[]): Promise<readonly BudgetAlert[]>;
  /** The calls without end users that were erased after they arrived. */
  withoutErased(calls: readonly UsageRecord[]): Promise<readonly UsageRecord[]>;
  /** The receiver has the batch. */
  confirm(holder: string, batch: CallBatch): Promise<void>;
}

export interface StoredCallsRequest {
  /** The gateway that delivers, and until when no other does. */
  readonly holder: string;
  readonly untilMs: number;
  readonly nowMs: number;
  readonly limit: number;
}

export interface CallBatch {
  readonly calls: readonly UsageRecord[];
  /** Noted when these calls were stored. */
  readonly alerts: readonly BudgetAlert[];
  /** Runs that priced calls again since the last batch. */
  readonly repriced: readonly RepriceRun[];
  /** The place of the last of them in the order. */
  readonly end: number;
}

/** Percentages of a budget that were reached at once, each the first time in a period. */
export interface BudgetAlert {
  /** The same each time that it is read. */
  readonly id: string;
  /** With the mode and the limit of then. */
  readonly budget: Budget;
  readonly periodId: string;
  /** Ascending. */
  readonly thresholds: readonly number[];
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly spentNano: number;
}

/** Rows not stored because they came too late. */
export interface DroppedRows {
  readonly ofErasedAccounts: number;
  /** Rows from a time whose calls were removed: already counted, or past retention. */
  readonly tooOld: number;
}

/**
 * Times in milliseconds since the epoch before which rows are removed: single calls, and sums in
 * whole days.
 */
export interface UsageRetention {
  readonly calls: number;
  readonly hours: number;
  /** Sums by the day are kept at least as long as the calls and hours of that day. */
  readonly days: number;
}

/** A call with an `Idempotency-Key` that somebody makes. */
export interface HeldClaim {
  /** The id under which its answer will be kept. */
  readonly id: string;
  /** The id of the call that is made, and of no other. */
  readonly holder: string;
}

export interface WantedClaim extends HeldClaim {
  /** Equal for equal requests. */
  readonly requestDigest: string;
  /** Ids under which an answer may be kept from before a rotation of the peppers. */
  readonly olderIds: readonly string[];
  /** Answers that were kept up to this time have expired, in milliseconds since the epoch. */
  readonly keptAfter: number;
}

/**
 * `yours`: the holder makes the call. `running`: another holder makes it; ask again. `reused`: a
 * different request runs under this id.
 */
export type ClaimAnswer =
  | { readonly kind: "yours" | "running" | "reused" }
  | { readonly kind: "kept"; readonly reply: KeptReply };

/**
 * A claim is over when it was asked for so often since its holder confirmed it. A count of seconds
 * would go on while the database is away and nobody can confirm anything.
 */
export const mostDoubts = 10;
/** Time after which another ask counts. */
export const doubtMs = 1_000;

/**
 * Who makes a call that may be repeated, and its answer. All throw `StorageUnavailable`. Every
 * backend passes `test/contracts/claims-contract.ts`.
 */
export interface CallClaims {
  /** Looks for an answer and a claim, and counts a doubt about a claim of another holder. */
  claim(wanted: WantedClaim): Promise<ClaimAnswer>;
  /** Removes all doubts about these claims. Others are ignored. */
  confirm(claims: readonly HeldClaim[]): Promise<void>;
  release(claim: HeldClaim): Promise<void>;
  /**
   * Stores or replaces a reply, ends the claim of its holder, and returns how many other replies
   * were evicted to fit `limitBytes`. Each reply counts `replyRowBytes` beside its body. Evicts the
   * oldest replies of the account that has most, the new one included. Stores nothing for erased
   * accounts.
   */
  keep(answered: AnsweredClaim): Promise<number>;
}

export interface AnsweredClaim {
  readonly reply: KeptReply;
  readonly holder: string;
  readonly limitBytes: number;
}

/**
 * Encrypted answers to calls that may be replayed with their `Idempotency-Key`. Every backend
 * passes `test/contracts/reply-store-contract.ts`.
 */
export interface ReplyStore extends CallClaims {
  /**
   * Removes at most `limit` replies that were stored before a time, in milliseconds since the
   * epoch, or belong to erased accounts, and claims that nobody asked about for days; returns how
   * many.
   */
  prune(before: number, limit: number): Promise<number>;
}

export interface KeptReply {
  /** Opaque: reveals neither the API key nor the `Idempotency-Key`. */
  readonly id: string;
  readonly accountId: string;
  /** Equal for equal requests; reveals nothing of their content. */
  readonly requestDigest: string;
  /** Undefined: the call succeeded, but its answer is too large to keep. */
  readonly body: Uint8Array | undefined;
  /** Milliseconds since the epoch. */
  readonly keptAt: number;
}

/** The storage of a reply beside its body: its row and its index entries. */
export const replyRowBytes = 512;

export function sizeOfReply({ body }: KeptReply): number {
  return replyRowBytes + (body?.byteLength ?? 0);
}

/** A response that later requests of its account may refer to. */
export interface StoredResponse {
  /** Opaque: reveals nothing of the response's own id. */
  readonly id: string;
  readonly accountId: string;
  readonly keyId: string;
  /** Milliseconds since the epoch. */
  readonly expiresAt: number;
  /** Encrypted. */
  readonly body: Uint8Array;
  /** Its input, encrypted by itself: only a request that continues it needs this. */
  readonly input: Uint8Array;
}

/** Without its input, unless that was asked for. */
export type FoundResponse = Pick<StoredResponse, "id" | "body"> &
  Partial<Pick<StoredResponse, "input">>;

export interface AddedResponse {
  readonly response: StoredResponse;
  /** Of the key. */
  readonly limitBytes: number;
}

/** Which responses are meant, and the account that may have them. */
export interface WantedResponses {
  readonly ids: readonly string[];
  readonly accountId: string;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** All throw `StorageUnavailable`. Every backend passes `test/contracts/response-store-contract.ts`. */
export interface ResponseStore {
  /**
   * Stores a response, unless its account is erased. The oldest of the key go, until all of the key
   * fit into `limitBytes`; each counts `replyRowBytes` beside its body and its input.
   */
  put(added: AddedResponse): Promise<void>;
  find(
    wanted: WantedResponses & { readonly withInput: boolean },
  ): Promise<readonly FoundResponse[]>;
  /** Returns whether one was there. */
  remove(wanted: WantedResponses): Promise<boolean>;
}

/** The published tables of prices. All throw `StorageUnavailable`. */
export interface PriceTables {
  /** The tables that apply to calls since a time; undefined if the newest version is known. */
  load(since: number, known: number | undefined): Promise<readonly PriceTable[] | undefined>;
  /** Newest first, at most as many as the limit. */
  versions(limit: number): Promise<readonly Pick<PriceTable, "version" | "validFrom">[]>;
  /** By default the newest, which applies now; undefined: it was never published. */
  find(version?: number): Promise<PriceTable | undefined>;
}

/** What identifies the installation that a database belongs to. */
export interface DatabaseFacts {
  readonly path: string;
  /** `missing`: there is no file; `empty`: a file without tables. */
  readonly state: "missing" | "empty" | "filled";
  /** Of its schema; 0: it has none. */
  readonly version: number;
  /** Undefined when no gateway has claimed the database. */
  readonly installation: string | undefined;
  /** The mark of the newest pepper used with the database; undefined as above. */
  readonly pepperMark: string | undefined;
}

/** What is known of a database without tables. */
export function factsOfNone(path: string, state: "missing" | "empty"): DatabaseFacts {
  return { path, state, version: 0, installation: undefined, pepperMark: undefined };
}

/** What the owning gateway writes into its database. */
export interface DatabaseClaim {
  readonly installation: string;
  readonly pepperMark: string;
  /** When it is claimed. */
  readonly at: number;
}

/** Decides, each time a database is opened, whether it is the right one. */
export interface DatabaseOwner {
  /** Throws `WrongDatabase` when it is not; called before anything is written or created. */
  check(facts: DatabaseFacts): void;
  /** Returns the claim for a checked database, after storing what must not be lost with it. */
  claim(facts: DatabaseFacts): DatabaseClaim;
}
