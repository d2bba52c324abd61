/** An account holder manages one account's applications and keys, an auditor reads. */
export const roles = ["operator", "account_holder", "auditor"] as const;
export type Role = (typeof roles)[number];

export const scopes = ["read", "write"] as const;
export type Scope = (typeof scopes)[number];

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
