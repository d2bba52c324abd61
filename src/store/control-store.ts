import type { AuditLink } from "./audit.ts";

/** Times in milliseconds since the epoch; rows that ended or were written earlier are removed. */
export interface ControlRetention {
  /** Removes entries from the beginning of the chain; the rest can still be verified. */
  readonly audit: number;
  /** Revoked keys and ended secrets. */
  readonly keys: number;
  /** Ended sessions and tokens. */
  readonly access: number;
  readonly replies: number;
}

export interface PageRequest {
  /** Maximum number of items. */
  readonly limit: number;
  /** `next` of the previous page; undefined: from the start. Throws `InvalidCursor`. */
  readonly after?: string | undefined;
}

export interface Page<Item> {
  readonly items: readonly Item[];
  /** Where the next page begins; undefined at the end. */
  readonly next: string | undefined;
}

export interface KeyFilter {
  readonly accountId?: string | undefined;
  readonly applicationId?: string | undefined;
  readonly environment?: string | undefined;
  readonly plan?: string | undefined;
  /** Only keys with units of this pool. */
  readonly provisionedPool?: string | undefined;
  /** Only keys whose units count as sold at this time; see `SoldUnitsFilter`. */
  readonly countsAt?: number | undefined;
  /**
   * True: not revoked or expired at `now`, with a live secret, and not disabled, nor its
   * application or account. False: any other.
   */
  readonly isActive?: { readonly value: boolean; readonly now: number } | undefined;
}

export interface SoldUnitsFilter {
  readonly pool?: string | undefined;
  readonly accountId?: string | undefined;
  /**
   * Sums keys that are neither revoked nor expired at this time. Disabled keys and keys of disabled
   * accounts count, since they can be enabled again.
   */
  readonly now: number;
}

/** Something that ends at a time. */
export interface Due {
  readonly id: string;
  readonly name: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
}

/** A rotated key whose previous secret still works. */
export interface OpenRotation extends Due {
  readonly lastUsedAt: number | null;
}

export interface DueQuestion {
  readonly now: number;
  readonly before: number;
  readonly limit: number;
  readonly accountId?: string | undefined;
}

export interface AuditFilter {
  readonly accountId?: string | undefined;
  readonly actorId?: string | undefined;
  readonly action?: string | undefined;
  readonly subjectId?: string | undefined;
  /** Milliseconds since the epoch. */
  readonly since?: number | undefined;
  readonly until?: number | undefined;
}

/** The answer to a repeatable request, by the digest of its caller and idempotency key. */
export interface StoredReply {
  readonly id: string;
  /** Digest of method, path and body; the same key with another digest is refused. */
  readonly requestDigest: string;
  readonly status: number;
  /** Encrypted, as it may hold a new secret. Undefined once it may not be shown again. */
  readonly body: Uint8Array | undefined;
  readonly createdAt: number;
  /** Until when `body` may be shown. */
  readonly shownUntil: number;
}

/** Counts by the mark of the pepper; "" counts digests from before marks were stored. */
export interface PepperUse {
  readonly secrets: ReadonlyMap<string, number>;
  readonly tokens: ReadonlyMap<string, number>;
  /** Answers kept for replay since before the newest pepper. */
  readonly keptAnswers: number;
  /** When the newest pepper came into use; undefined: it is the only one so far. */
  readonly firstSince: number | undefined;
}

export interface AuditEnds {
  /** The sequence of the first kept entry; 1 without entries. */
  readonly first: number;
  readonly last: AuditLink;
  /** Whether the audit contains the known link, or removed it by retention; true when none was given. */
  readonly hasKnown: boolean;
}

/** Evidence about the audit that was kept elsewhere. */
export interface AuditExpectation {
  /** A kept entry must have this digest. */
  readonly digest?: string | undefined;
  /** The entry that must have the digest. */
  readonly sequence?: number | undefined;
}

export interface AuditVerdict {
  readonly isIntact: boolean;
  readonly entries: number;
  /** Digest of the last entry; kept elsewhere, it reveals a database restored to an older state. */
  readonly lastDigest: string;
  readonly problem: AuditProblem | undefined;
  /** The first kept entry: retention has removed those before it. */
  readonly first: { readonly sequence: number; readonly at: number } | undefined;
}

export interface AuditProblem {
  readonly sequence: number;
  readonly what: string;
}
