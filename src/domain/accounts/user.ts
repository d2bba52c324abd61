/** An account holder manages one account's applications and keys, an auditor reads. */
export const roles = ["operator", "account_holder", "auditor"] as const;
export type Role = (typeof roles)[number];

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
  readonly createdAt: number;
  readonly lastSeenAt: number;
  /** Absolute expiry, regardless of activity. */
  readonly expiresAt: number;
}

export const scopes = ["read", "write"] as const;
export type Scope = (typeof scopes)[number];

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

/** The author of a control plane request and what it may do. */
export interface Principal {
  /** `local`: a process that can read the data directory, such as the command line on this machine. */
  readonly kind: "session" | "token" | "local";
  /** The user; undefined for `local`. */
  readonly userId: string | undefined;
  /** The token, for kind `token`. */
  readonly tokenId?: string | undefined;
  /** Shown in the audit: an email address, or `local`. */
  readonly name: string;
  readonly role: Role;
  /** The account it is limited to; undefined: all. */
  readonly accountId: string | undefined;
  readonly scopes: readonly Scope[];
}
