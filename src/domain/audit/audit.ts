/** A change of the control plane, before it has its place in the chain. */
export interface AuditEntry {
  readonly at: number;
  readonly actor: {
    readonly kind: "session" | "token" | "local" | "system";
    /** Of the user; undefined for `local` and `system`. */
    readonly id: string | undefined;
    readonly name: string;
  };
  /** Where the request came from; undefined when there was no connection. */
  readonly address: string | undefined;
  readonly requestId: string | undefined;
  /** `<resource>.<verb>`, such as `key.rotate`. */
  readonly action: string;
  readonly subject: { readonly type: string; readonly id: string };
  /** Whose matter it is; account holders see the entries of their account. */
  readonly accountId: string | undefined;
  /** Fields before and after, never with a secret, a digest or a password hash. */
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

/** An entry in its place: each digest covers the entry and the digest before it. */
export interface AuditRecord extends AuditEntry {
  /** 1, 2, 3, ... without gaps. */
  readonly sequence: number;
  /** SHA-256 in hexadecimal digits; of the first entry's predecessor, 64 zeros. */
  readonly previousDigest: string;
  readonly digest: string;
}
