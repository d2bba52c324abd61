import type { Key, KeySecret } from "../domain/keys/key.ts";
import type { CountedRequest, LimitScope, LimitUnit } from "../domain/limits/limit-scope.ts";
import type { LimitState } from "../domain/limits/limit-state.ts";
import type { PepperedDigest } from "../domain/keys/peppers.ts";
import type { Limits } from "../domain/limits/plan.ts";
import type { WindowSlot } from "../domain/errors/refusal.ts";
import type { UsageRecord } from "../domain/usage/usage.ts";

/** What authentication follows. Every backend passes `contract/key-store-contract.ts`. */
export interface KeyStore {
  /** Keys that have changed since an epoch, at most `limit`, oldest change first. 0: all keys. */
  loadKeys(since: number, limit: number): Promise<KeyChanges>;
  /** Notes when secrets were last used; never turns a time back. */
  recordLastUse(uses: ReadonlyMap<string, number>): Promise<void>;
  /** Puts a secret's digest under another pepper, unless it has changed. Rings hear of the key. */
  renewDigest(secret: RenewedSecret): Promise<void>;
}

export interface RenewedSecret {
  readonly publicId: string;
  /** As it is stored, under an older pepper. */
  readonly stored: Uint8Array;
  /** Of the same text, under the first pepper. */
  readonly renewed: PepperedDigest;
}

export interface KeyChanges {
  readonly changes: readonly KeyChange[];
  /** To be asked for next time. */
  readonly epoch: number;
  /** Whether further changes wait behind this epoch. */
  readonly hasMore: boolean;
}

export interface KeyChange {
  readonly keyId: string;
  /** Undefined when it may not be used: revoked, disabled, or of a disabled application or account. */
  readonly live: LiveKey | undefined;
  /** Of a key that may not be used; undefined when it was removed. */
  readonly ended?: EndedKey | undefined;
}

export interface LiveKey {
  readonly key: Key;
  /** What all keys of its account may use together. */
  readonly accountLimits?: Limits | undefined;
  readonly secrets: readonly KeySecret[];
}

/** Why and since when a key may not be used, for explanations alone. */
export interface EndedKey {
  readonly reason: KeyEndReason;
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly key: Key;
  /** By which it may still be asked for; none of a key that ended more than a day ago. */
  readonly secrets: readonly KeySecret[];
}

export type KeyEndReason =
  "key_revoked" | "key_disabled" | "application_disabled" | "account_disabled";

/** One live secret, as authentication finds it. */
export interface StoredSecret {
  readonly key: Key;
  readonly accountLimits?: Limits | undefined;
  readonly secret: KeySecret;
}

/** Writes the ledger. Every backend passes `contract/usage-store-contract.ts`. */
export interface UsageStore {
  /**
   * Writes all records and their roll-ups in one transaction. A record whose id is known is left as
   * it is and counted nowhere again. Throws `RefusedRows` for a fault of the data,
   * `StorageUnavailable` for anything that may pass.
   */
  insert(records: readonly UsageRecord[]): Promise<void>;
  /** Removes at most `limit` of what is older than the times given; how many rows went. */
  prune(limits: UsageRetention, limit: number): Promise<number>;
  /** Removes at most `limit` rows of an account; how many went. */
  erase(accountId: string, limit: number): Promise<number>;
}

/**
 * Times in milliseconds since the epoch; what is older goes: calls one by one, sums by the minute in
 * whole hours, all others in whole days. Undefined: it stays.
 */
export interface UsageRetention {
  readonly calls: number | undefined;
  readonly minutes: number | undefined;
  readonly hours: number | undefined;
  /** Sums of a day stay as long as anything else of it. */
  readonly days: number | undefined;
}

export interface LimitRequest {
  /** Unique; `settle` names it again. */
  readonly callId: string;
  /** Never empty. Either all scopes are charged or none, each in its unit. */
  readonly scopes: readonly LimitScope[];
  /** To reserve in every scope of tokens. */
  readonly tokens: number;
  /** The most that the call can use, where that is more. */
  readonly mostTokens?: number | undefined;
  /** Set when the scopes of requests have counted it before: only its tokens are new. */
  readonly counted?: CountedRequest | undefined;
}

export type CountDecision =
  { readonly isAdmitted: true; readonly counted: CountedRequest } | RefusedByLimit;

export type LimitDecision =
  | {
      readonly isAdmitted: true;
      /** Of the id that the first scope names. */
      readonly state: LimitState;
    }
  | RefusedByLimit;

export interface RefusedByLimit {
  readonly isAdmitted: false;
  readonly scopeId: string;
  readonly dimension: LimitUnit;
  /** When the same request fits if nothing else is admitted; undefined: it never fits. */
  readonly freeAfterMs: number | undefined;
  /** Set when calls under way could use too much beyond what is charged for them, in tokens. */
  readonly overrun?: { readonly limit: number; readonly used: number; readonly asked: number };
  /** What to tell the caller: that, or longer, so that not all come back at once. */
  readonly retryAfterMs: number | undefined;
  /** Of the id whose scope refused. */
  readonly state: LimitState;
  /** Tokens that it was used beyond its limit, and that are not paid yet. */
  readonly debt: number;
  /** What was held of that id, oldest first, empty seconds left out. */
  readonly slots: readonly WindowSlot[];
}

/**
 * Limits of calls, whatever their unit and window. Every backend passes `contract/limit-store-contract.ts`.
 * A backend in this process may answer without a promise.
 */
export interface LimitStore {
  /** Counts one in all scopes of requests, if none of any unit is over. A refusal changes nothing. */
  count(scopes: readonly LimitScope[]): CountDecision | Promise<CountDecision>;
  /** Takes a counted request back, once. */
  uncount(counted: CountedRequest): void | Promise<void>;
  /** One atomic step over all scopes. A refusal changes nothing. */
  acquire(request: LimitRequest): LimitDecision | Promise<LimitDecision>;
  /**
   * A call under way has used so many tokens by now: what is more than was charged for it is charged
   * now. Unknown calls are left alone.
   */
  use(callId: string, tokens: number): void | Promise<void>;
  /**
   * Replaces a reservation by what was used, once; unknown calls are left alone. What was used beyond
   * the limit is a debt, which takes what becomes free until it is paid. A count that makes no sense
   * leaves what was charged.
   */
  settle(callId: string, tokens: number): void | Promise<void>;
  /**
   * Counts what was admitted before this store began, by the process before. A backend that
   * outlives processes has no such thing.
   */
  restore?(admitted: readonly PastAdmission[]): void;
}

/** What reserves tokens alone, such as those of a pool. */
export type TokenLimits = Pick<LimitStore, "acquire" | "settle">;

/** Requests that a scope was admitted for at a time. */
export interface PastAdmission {
  readonly scopeId: string;
  /** Whether it was admitted as a guarantee. */
  readonly isGuarantee?: boolean;
  readonly ageMs: number;
  readonly requests: number;
  readonly tokens: number;
}

/**
 * Answers to calls that may be repeated with their `Idempotency-Key`. What they say is unknown here:
 * they come encrypted. Every backend passes `contract/reply-store-contract.ts`.
 */
export interface ReplyStore {
  find(id: string): Promise<KeptReply | undefined>;
  /**
   * Keeps a reply in place of one with its id; how many others went for it. They go until all that is
   * kept fits into the limit, in which each reply counts `replyRowBytes` beside its body: always the
   * oldest of the account that has most, the new reply included. Of accounts that were erased nothing
   * is kept.
   */
  put(reply: KeptReply, limitBytes: number): Promise<number>;
  /**
   * Removes at most `limit` replies that were kept before a time, in milliseconds since the epoch,
   * or are of accounts that were erased; how many went.
   */
  prune(before: number, limit: number): Promise<number>;
}

export interface KeptReply {
  /** Tells nothing of the key that asked, nor of the `Idempotency-Key`. */
  readonly id: string;
  readonly accountId: string;
  /** Tells equal requests, and nothing of what they say. */
  readonly requestDigest: string;
  /** Undefined: the call was done, and its answer is too large to be kept. */
  readonly body: Uint8Array | undefined;
  /** Milliseconds since the epoch. */
  readonly keptAt: number;
}

/** What a kept reply takes beside its body: its row, and its places in indexes. */
export const replyRowBytes = 512;

export function sizeOfReply({ body }: KeptReply): number {
  return replyRowBytes + (body?.byteLength ?? 0);
}
