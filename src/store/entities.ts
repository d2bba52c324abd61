import type { Limits } from "../domain/limits/plan.ts";
import type { Budget } from "../domain/money/budget.ts";
import type { Role, Scope } from "../domain/principal.ts";

/** A customer: owns applications and their keys. */
export interface Account {
  readonly id: string;
  readonly name: string;
  readonly note: string;
  /** Plans that its account holders may issue keys on; operators may use any. */
  readonly plans: readonly string[];
  /** Limit on unrevoked keys across all its applications. */
  readonly maxKeys: number;
  /** Limits on all its keys together, not counting provisioned throughput; undefined: no limit. */
  readonly limits: Limits | undefined;
  /** IANA name; the default of its new budgets. */
  readonly timeZone: string;
  /** Milliseconds since the epoch, as all times of an entity. */
  readonly createdAt: number;
  /** Set while none of its keys may call. */
  readonly disabledAt: number | undefined;
  /** Incremented by each change; a change names the revision it is based on. */
  readonly revision: number;
}

/** A program of an account in one environment; keys are issued to it. */
export interface Application {
  readonly id: string;
  readonly accountId: string;
  readonly environment: string;
  /** Unique within account and environment. */
  readonly name: string;
  readonly note: string;
  readonly createdAt: number;
  readonly disabledAt: number | undefined;
  /** Role of the user who disabled it. Only operators can enable what an operator disabled. */
  readonly disabledBy: Role | undefined;
  readonly revision: number;
}

/** A budget as it is managed. */
export interface StoredBudget extends Budget {
  /** Percentages of the limit, ascending: when they are reached, an event tells. */
  readonly alerts: readonly number[];
  readonly note: string;
  readonly revision: number;
}

/** A user of the control plane. */
export interface User {
  readonly id: string;
  /** In lower case; unique. */
  readonly email: string;
  readonly name: string;
  readonly role: Role;
  /** Always set for account holders, never for operators; set for auditors of a single account. */
  readonly accountId: string | undefined;
  /** Argon2id; undefined for users who only use single sign-on. */
  readonly passwordHash: string | undefined;
  /** The user at the identity provider, bound at the first single sign-on. */
  readonly identity: Identity | undefined;
  readonly createdAt: number;
  readonly disabledAt: number | undefined;
  readonly lastSignInAt: number | undefined;
  readonly revision: number;
}

export interface Identity {
  readonly issuer: string;
  readonly subject: string;
}

/** A browser session, identified by the digest of the secret in its cookie. */
export interface Session {
  /** SHA-256 of the cookie's value, in hexadecimal digits. */
  readonly id: string;
  readonly userId: string;
  /** Where it was started; undefined without a connection. */
  readonly address: string | undefined;
  readonly createdAt: number;
  readonly lastSeenAt: number;
  /** Absolute expiry, regardless of activity. */
  readonly expiresAt: number;
}

/** What a link does: sign in as it is, or with a new password, which comes with its token. */
export type LinkPurpose = "sign-in" | "new-password";

/** A link that signs its user in once; the token in it is not stored. */
export interface SignInLink {
  readonly userId: string;
  /** SHA-256 of the token, in hexadecimal digits. */
  readonly digest: string;
  readonly purpose: LinkPurpose;
  readonly expiresAt: number;
}

/** A script's credential: acts as its user, within its scopes. */
export interface ManagementToken {
  readonly id: string;
  readonly userId: string;
  readonly name: string;
  /** Part of the token's text that may be shown. */
  readonly publicId: string;
  /** The token that created this one; both end together. Undefined: created by a user. */
  readonly parentId?: string | undefined;
  /** HMAC-SHA-256 of the token's text under a pepper. */
  readonly digest: Uint8Array;
  /** Mark of that pepper; undefined if unknown. */
  readonly pepper?: string | undefined;
  readonly scopes: readonly Scope[];
  readonly createdAt: number;
  readonly expiresAt: number;
  readonly lastUsedAt: number | undefined;
  readonly revokedAt: number | undefined;
}
