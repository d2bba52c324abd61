import type { Key, KeySecret } from "../domain/key.ts";
import type { LimitDimension, LimitState } from "../domain/limit-state.ts";
import type { Limits } from "../domain/plan.ts";
import type { UsageRecord } from "../domain/usage.ts";

/** Keys and their secrets. Every backend passes `contract/key-store-contract.ts`. */
export interface KeyStore {
  /** Throws when the key's or the secret's id is taken. */
  create(key: Key, secret: KeySecret): Promise<void>;
  /** All keys, newest first. */
  list(): Promise<readonly Key[]>;
  /** Marks a key as revoked. False when there is no such key; an earlier revocation stands. */
  revoke(keyId: string, revokedAt: number): Promise<boolean>;
  /** All live secrets with their keys, for the snapshot that authentication reads. */
  loadSecrets(): Promise<readonly StoredSecret[]>;
  /** Changes whenever another connection or process has written. Cheap enough to poll. */
  version(): Promise<number>;
}

export interface StoredSecret {
  readonly key: Key;
  readonly secret: KeySecret;
}

/** The ledger. Every backend passes `contract/usage-store-contract.ts`. */
export interface UsageStore {
  /** Writes all records in one transaction. A record whose id is known is left as it is. */
  insert(records: readonly UsageRecord[]): Promise<void>;
  /** Sums since a time in milliseconds, by application and model. */
  summarize(since: number): Promise<readonly UsageSummary[]>;
  /** The newest records, at most `limit`. */
  listRecent(limit: number): Promise<readonly UsageRecord[]>;
}

export interface UsageSummary {
  readonly environment: string;
  readonly application: string;
  readonly keyId: string;
  readonly model: string;
  readonly calls: number;
  readonly failedCalls: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cachedInputTokens: number;
}

/** Something that is limited, such as one key, and what it may use in any 60 seconds. */
export interface LimitScope {
  readonly id: string;
  readonly limits: Limits;
}

export interface LimitRequest {
  /** Unique; `settle` names it again. */
  readonly callId: string;
  /** Never empty. Either all scopes are charged or none. */
  readonly scopes: readonly LimitScope[];
  /** Tokens to reserve in every scope. */
  readonly tokens: number;
}

export type LimitDecision =
  | {
      readonly isAdmitted: true;
      /** Of the first scope named. */
      readonly state: LimitState;
    }
  | {
      readonly isAdmitted: false;
      readonly scopeId: string;
      readonly dimension: LimitDimension;
      /** When the same request fits if nothing else is admitted; undefined: it never fits. */
      readonly retryAfterMs: number | undefined;
      /** Of the scope that refused. */
      readonly state: LimitState;
    };

/**
 * Requests and tokens per minute. Every backend passes `contract/limit-store-contract.ts`.
 * A backend in this process may answer without a promise.
 */
export interface LimitStore {
  /** One atomic step over all scopes. A refusal changes nothing. */
  acquire(request: LimitRequest): LimitDecision | Promise<LimitDecision>;
  /** Replaces a reservation by what was used, once; unknown calls are left alone. */
  settle(callId: string, tokens: number): void | Promise<void>;
}
