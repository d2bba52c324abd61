import type { Account, Application } from "../domain/accounts/account.ts";
import type { AuditEntry, AuditLink, AuditRecord } from "../domain/audit.ts";
import type { Key, KeySecret } from "../domain/keys/key.ts";
import type { PepperedDigest } from "../domain/keys/peppers.ts";
import type { ManagementToken, Role, Session, User } from "../domain/accounts/user.ts";

/**
 * The data of the control plane: who owns which key, who may change it, and who did. Every backend
 * passes `test/contracts/control-store-contract.ts`.
 */
export interface ControlStore {
  /** Reads one consistent state of the data. Throws `StorageUnavailable`. */
  read<Result>(work: (view: ControlView) => Promise<Result>): Promise<Result>;
  /**
   * Runs transactions one at a time; an error thrown by `work` rolls back. `work` must await only
   * the transaction. Throws `StorageUnavailable`.
   */
  change<Result>(work: (transaction: ControlTransaction) => Promise<Result>): Promise<Result>;
  /** Reads the whole audit in pages and checks the chain. */
  verifyAudit(signal: AbortSignal, expected?: AuditExpectation): Promise<AuditVerdict>;
  /** The ends of the audit, without reading all of it, and whether it still contains `known`. */
  auditEnds(known?: AuditLink): Promise<AuditEnds>;
  /** Counts what is live at a time, by the pepper that protects it. */
  pepperUse(now: number): Promise<PepperUse>;
  /** Removes at most `limit` rows of each table older than the given times; returns how many. */
  prune(limits: ControlRetention, limit: number): Promise<number>;
}

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

export interface ControlView {
  readonly accounts: Reader<Account, AccountFilter>;
  readonly applications: Reader<Application, ApplicationFilter>;
  readonly keys: KeyReader;
  readonly secrets: SecretReader;
  readonly users: UserReader;
  readonly sessions: { get(id: string): Promise<Session | undefined> };
  readonly tokens: TokenReader;
  readonly audit: { list(filter: AuditFilter, page: PageRequest): Promise<Page<AuditRecord>> };
  readonly replies: { get(id: string): Promise<StoredReply | undefined> };
}

export interface ControlTransaction extends ControlView {
  readonly accounts: Writer<Account, AccountFilter> & {
    /** From now on, refuses all calls of the account, including those still to be stored. */
    markErased(id: string, at: number): Promise<void>;
  };
  readonly applications: Writer<Application, ApplicationFilter>;
  /** Every change of a key, its secrets, application or account reaches the key rings. */
  readonly keys: Writer<Key, KeyFilter> & KeyReader;
  readonly secrets: SecretReader & {
    insert(secret: KeySecret): Promise<void>;
    /** Sets when a secret stops working. */
    expire(publicId: string, expiresAt: number): Promise<void>;
  };
  readonly users: Writer<User, UserFilter> &
    UserReader & {
      /** Records a sign-in, which does not change the revision. */
      signedIn(id: string, at: number): Promise<void>;
    };
  readonly sessions: ControlView["sessions"] & {
    insert(session: Session): Promise<void>;
    seen(id: string, at: number): Promise<void>;
    delete(id: string): Promise<void>;
    /** Deletes all sessions of a user, for example when the role changes. */
    deleteOf(userId: string): Promise<void>;
  };
  readonly tokens: TokenReader & {
    insert(token: ManagementToken): Promise<void>;
    used(id: string, at: number): Promise<void>;
    /** Replaces the token's digest by one under another pepper. */
    renew(id: string, digest: PepperedDigest): Promise<void>;
    /** Revokes the token and all its descendants; returns the ids of all that this ended. */
    revoke(id: string, at: number): Promise<readonly string[]>;
    /**
     * Revokes all tokens of a user and their descendants, for example when the user is disabled.
     */
    revokeOf(userId: string, at: number): Promise<readonly string[]>;
  };
  readonly audit: ControlView["audit"] & {
    /** Appends the entry to the chain in this transaction. */
    append(entry: AuditEntry): Promise<AuditRecord>;
  };
  readonly replies: ControlView["replies"] & { put(reply: StoredReply): Promise<void> };
}

export interface Reader<Entity, Filter> {
  get(id: string): Promise<Entity | undefined>;
  /**
   * Newest first, matching every field of the filter. When matches are rare, a page may be short or
   * even empty and still name a next one.
   */
  list(filter: Filter, page: PageRequest): Promise<Page<Entity>>;
}

export interface Writer<Entity, Filter> extends Reader<Entity, Filter> {
  /** Throws `AlreadyExists` when the id or a unique name is taken. */
  insert(entity: Entity): Promise<void>;
  /**
   * Replaces the entity of this id and increments its revision; `entity.revision` must be the
   * stored one. Returns the entity as stored. Throws `RevisionConflict`, `AlreadyExists`.
   */
  update(entity: Entity): Promise<Entity>;
  /** Removes the entity; false when there is none. Throws `StillInUse` while others refer to it. */
  delete(id: string): Promise<boolean>;
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

export interface AccountFilter {
  readonly id?: string | undefined;
  readonly name?: string | undefined;
}

export interface ApplicationFilter {
  readonly accountId?: string | undefined;
  readonly environment?: string | undefined;
  readonly name?: string | undefined;
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

export interface UserFilter {
  readonly accountId?: string | undefined;
  readonly role?: Role | undefined;
  readonly email?: string | undefined;
}

export interface KeyReader extends Reader<Key, KeyFilter> {
  /** How many keys of an account are not revoked, capped at `upTo`. */
  countLive(accountId: string, upTo: number): Promise<number>;
  /** Units that keys hold, by pool; pools without units are absent. */
  soldUnits(filter: SoldUnitsFilter): Promise<ReadonlyMap<string, number>>;
  /**
   * The limit scope of a recently revoked key of the application's account, whose usage still
   * counts at `now` and that no other key has taken over; undefined: there is none.
   */
  freeLimitScope(application: Application, now: number): Promise<string | undefined>;
}

export interface UserReader extends Reader<User, UserFilter> {
  /** The user with this identity; undefined: never signed in with it. */
  findByIdentity(issuer: string, subject: string): Promise<User | undefined>;
}

export interface SecretReader {
  /**
   * All secrets of a key, newest first, ended ones included; at most the 100 with the latest end.
   */
  ofKey(keyId: string): Promise<readonly KeySecret[]>;
  get(publicId: string): Promise<KeySecret | undefined>;
}

export interface TokenReader {
  findByPublicId(publicId: string): Promise<ManagementToken | undefined>;
  get(id: string): Promise<ManagementToken | undefined>;
  /** Newest first, revoked and expired ones included. */
  list(
    filter: { readonly userId?: string | undefined },
    page: PageRequest,
  ): Promise<Page<ManagementToken>>;
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
