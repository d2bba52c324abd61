/**
 * What somebody may do in the control plane: an operator everything, an account holder manages the
 * applications and keys of one account, an auditor reads.
 */
export const roles = ["operator", "account_holder", "auditor"] as const;
export type Role = (typeof roles)[number];

/** Somebody who signs in to the control plane. */
export interface User {
  readonly id: string;
  /** In lower case; unique. */
  readonly email: string;
  readonly name: string;
  readonly role: Role;
  /** Of account holders always; of auditors when they see one account only; never of operators. */
  readonly accountId: string | undefined;
  /** Argon2id; undefined for users of single sign-on alone. */
  readonly passwordHash: string | undefined;
  /** Who the user is to the identity provider; bound at the first single sign-on. */
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

/** A signed-in browser. Known by the digest of the secret in its cookie. */
export interface Session {
  /** SHA-256 of the cookie's value, in hexadecimal digits. */
  readonly id: string;
  readonly userId: string;
  readonly createdAt: number;
  readonly lastSeenAt: number;
  /** The absolute end, however busy the session is. */
  readonly expiresAt: number;
}

export const scopes = ["read", "write"] as const;
export type Scope = (typeof scopes)[number];

/** What a script signs in with: acts as its user, within its scopes. */
export interface ManagementToken {
  readonly id: string;
  readonly userId: string;
  readonly name: string;
  /** Part of the token's text that may be shown. */
  readonly publicId: string;
  /** The token that it was made with: it ends with that one. Undefined: a user made it. */
  readonly parentId?: string | undefined;
  /** HMAC-SHA-256 of the token's text under a pepper. */
  readonly digest: Uint8Array;
  /** Mark of that pepper; undefined where it was never noted. */
  readonly pepper?: string | undefined;
  readonly scopes: readonly Scope[];
  readonly createdAt: number;
  readonly expiresAt: number;
  readonly lastUsedAt: number | undefined;
  readonly revokedAt: number | undefined;
}

/** Who makes a request of the control plane, and what that allows. */
export interface Principal {
  /** `local`: whoever can read the data directory, such as the command line on the same machine. */
  /** `system`: no principal that signs in, such as a secret scanner with its signature. */
  readonly kind: "session" | "token" | "local" | "system";
  /** Of the user; `local` has none. */
  readonly userId: string | undefined;
  /** Of a `token`: which one. */
  readonly tokenId?: string | undefined;
  /** What the audit shows: an email address, or `local`. */
  readonly name: string;
  readonly role: Role;
  /** The one account it is bound to; undefined: all. */
  readonly accountId: string | undefined;
  readonly scopes: readonly Scope[];
}
