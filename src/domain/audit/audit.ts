/** A change of the control plane, not yet in the chain. */
export interface AuditEntry {
  readonly at: number;
  readonly actor: {
    readonly kind: "session" | "token" | "local" | "system";
    /** User id; undefined for `local` and `system`. */
    readonly id: string | undefined;
    readonly name: string;
  };
  /** Address of the client; undefined without a connection. */
  readonly address: string | undefined;
  readonly requestId: string | undefined;
  /** `<resource>.<verb>`, such as `key.rotate`. */
  readonly action: string;
  readonly subject: { readonly type: string; readonly id: string };
  /** The account it concerns; account holders see the entries of their account. */
  readonly accountId: string | undefined;
  /** Fields before and after the change, without secrets, digests and password hashes. */
  readonly before: AuditFields | undefined;
  readonly after: AuditFields | undefined;
}

export type AuditFields = Readonly<Record<string, AuditValue>>;
export type AuditValue =
  | string
  | number
  | boolean
  | null
  | readonly AuditValue[]
  | { readonly [name: string]: AuditValue };

/** An entry in the chain: each digest covers the entry and the previous digest. */
export interface AuditRecord extends AuditEntry {
  /** 1, 2, 3, ... without gaps. */
  readonly sequence: number;
  /** SHA-256 in hexadecimal; 64 zeros for the first entry. */
  readonly previousDigest: string;
  readonly digest: string;
}
