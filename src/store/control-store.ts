import type { Account, Application } from "../domain/accounts/account.ts";
import type { AuditLink } from "../domain/audit/audit-checkpoint.ts";
import type { AuditEntry, AuditRecord } from "../domain/audit/audit.ts";
import type { Key, KeySecret } from "../domain/keys/key.ts";
import type { PepperedDigest } from "../domain/keys/peppers.ts";
import type { ManagementToken, Role, Session, User } from "../domain/accounts/user.ts";

/**
 * What the control plane keeps: who owns which key, who may change it, and who did. Every backend
 * passes `contract/control-store-contract.ts`.
 */
export interface ControlStore {
  /** Reads one state of the data. Throws `StorageUnavailable`. */
  read<Result>(work: (view: ControlView) => Promise<Result>): Promise<Result>;
  /**
   * All or nothing, one after another: what `work` throws undoes all it did. `work` must wait for
   * nothing but the transaction. Throws `StorageUnavailable`.
   */
  change<Result>(work: (transaction: ControlTransaction) => Promise<Result>): Promise<Result>;
  /** Reads the audit from the beginning, in pages, and checks the chain. */
  verifyAudit(signal: AbortSignal, expected?: AuditExpectation): Promise<AuditVerdict>;
  /** The end of the audit, without reading all of it; and whether it still has an end of before. */
  auditEnd(known?: AuditLink): Promise<AuditEnd>;
  /** How much that is live at a time was made under which pepper. */
  pepperUse(now: number): Promise<PepperUse>;
  /** Removes at most `limit` rows of each table that are older than the times given; how many. */
  prune(limits: ControlRetention, limit: number): Promise<number>;
}

/** Times in milliseconds since the epoch; what ended, or was written, before them goes. */
export interface ControlRetention {
  readonly now: number;
  /** Entries go from the beginning of the chain; what is left can still be verified. */
  readonly audit: number;
  /** Revoked keys, and secrets that ended. */
  readonly keys: number;
  /** Sessions and tokens that ended. */
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
    /** From now on no calls of the account are stored, whatever is still on its way. For ever. */
    markErased(id: string, at: number): Promise<void>;
  };
  readonly applications: Writer<Application, ApplicationFilter>;
  /** Every change of a key, its secrets, its application or its account reaches the key rings. */
  readonly keys: Writer<Key, KeyFilter> & KeyReader;
  readonly secrets: SecretReader & {
    insert(secret: KeySecret): Promise<void>;
    /** Sets when a secret stops working. */
    expire(publicId: string, expiresAt: number): Promise<void>;
  };
  readonly users: Writer<User, UserFilter> &
    UserReader & {
      /** Notes a sign-in. It is no change of the user: the revision stays. */
      signedIn(id: string, at: number): Promise<void>;
    };
  readonly sessions: ControlView["sessions"] & {
    insert(session: Session): Promise<void>;
    seen(id: string, at: number): Promise<void>;
    delete(id: string): Promise<void>;
    /** All sessions of a user, such as when the role changes. */
    deleteOf(userId: string): Promise<void>;
  };
  readonly tokens: TokenReader & {
    insert(token: ManagementToken): Promise<void>;
    used(id: string, at: number): Promise<void>;
    /** Puts the same token's digest under another pepper. */
    renew(id: string, digest: PepperedDigest): Promise<void>;
    /** With the tokens that were made with it, and with those; the ids of all that end by it. */
    revoke(id: string, at: number): Promise<readonly string[]>;
    /** All tokens of a user, such as when it is disabled, with what was made with them. */
    revokeOf(userId: string, at: number): Promise<readonly string[]>;
  };
  readonly audit: ControlView["audit"] & {
    /** Puts the entry at the end of the chain, in this transaction. */
    append(entry: AuditEntry): Promise<AuditRecord>;
  };
  readonly replies: ControlView["replies"] & { put(reply: StoredReply): Promise<void> };
}

export interface Reader<Entity, Filter> {
  get(id: string): Promise<Entity | undefined>;
  /**
   * Newest first. Only what fits every field of the filter. Where that is rare a page may hold less
   * than there is, even nothing, and name a next one.
   */
  list(filter: Filter, page: PageRequest): Promise<Page<Entity>>;
}

export interface Writer<Entity, Filter> extends Reader<Entity, Filter> {
  /** Throws `AlreadyExists` when the id or a unique name is taken. */
  insert(entity: Entity): Promise<void>;
  /**
   * Replaces the entity of this id and counts its revision up: `entity.revision` is the one that was
   * read. Returns the entity as stored. Throws `RevisionConflict`, `AlreadyExists`.
   */
  update(entity: Entity): Promise<Entity>;
  /** Removes the entity. Throws `StillInUse` while others refer to it. False when there is none. */
  delete(id: string): Promise<boolean>;
}

export interface PageRequest {
  /** Most items of the page. */
  readonly limit: number;
  /** `next` of the page before; undefined: from the start. Throws `InvalidCursor`. */
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
  /** Whose units are of this pool. */
  readonly provisionedPool?: string | undefined;
  /** Only keys whose units nobody else can have at this time; see `SoldUnitsFilter`. */
  readonly countsAt?: number | undefined;
  /**
   * True: neither revoked nor expired at `now`, neither it nor its application nor its account is
   * disabled, and a secret of it is live. False: any other.
   */
  readonly isActive?: { readonly value: boolean; readonly now: number } | undefined;
}

/** Which units are summed up. */
export interface SoldUnitsFilter {
  readonly pool?: string | undefined;
  readonly accountId?: string | undefined;
  /**
   * Of keys that are neither revoked nor expired at this time. Those that are disabled, or of a
   * disabled account, count: they can come back.
   */
  readonly now: number;
}

export interface UserFilter {
  readonly accountId?: string | undefined;
  readonly role?: Role | undefined;
  readonly email?: string | undefined;
}

export interface KeyReader extends Reader<Key, KeyFilter> {
  /** How many keys an account has that are not revoked; of more than `upTo`, that many. */
  countLive(accountId: string, upTo: number): Promise<number>;
  /** Units that keys hold, by pool; a pool without any is absent. */
  soldUnits(filter: SoldUnitsFilter): Promise<ReadonlyMap<string, number>>;
  /**
   * The limits that a key of the application's account has left, revoked not so long before `now`
   * that nothing counts any more, and that no other key goes on with; undefined: there are none.
   */
  freeLimitScope(application: Application, now: number): Promise<string | undefined>;
}

export interface UserReader extends Reader<User, UserFilter> {
  /** Whom the identity provider means; undefined: nobody that signed in before. */
  findByIdentity(issuer: string, subject: string): Promise<User | undefined>;
}

export interface SecretReader {
  /**
   * All secrets of a key, newest first, those that stopped working included. Of more than 100, the
   * 100 that work longest.
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

/** The answer to a request that may be asked again, by the digest of who asked with which key. */
export interface StoredReply {
  readonly id: string;
  /** Digest of method, path and body: the same key for another request is a mistake. */
  readonly requestDigest: string;
  readonly status: number;
  /** Encrypted: it may hold a new secret. Undefined once it may not be shown again. */
  readonly body: Uint8Array | undefined;
  readonly createdAt: number;
  /** Until when `body` may be shown. */
  readonly shownUntil: number;
}

/** Numbers by the mark of the pepper; "" is of what was made when none was noted. */
export interface PepperUse {
  readonly secrets: ReadonlyMap<string, number>;
  readonly tokens: ReadonlyMap<string, number>;
  readonly auditEntries: ReadonlyMap<string, number>;
  /** Answers for repetition from before the newest pepper. */
  readonly keptAnswers: number;
  /** Since when the newest pepper makes what is new; undefined: it was the first of all. */
  readonly firstSince: number | undefined;
}

export interface AuditEnd {
  /** Undefined when it is not what this installation wrote. */
  readonly end: AuditLink | undefined;
  /** True when nothing is known. */
  readonly hasKnown: boolean;
}

/** What is known of the audit from elsewhere. */
export interface AuditExpectation {
  /** An entry that is kept must have this digest, or the last one that was removed. */
  readonly digest?: string | undefined;
  /** Which entry. */
  readonly sequence?: number | undefined;
  /** With it, nothing may have been removed that is too young by now; the clock may be wrong. */
  readonly now?: number | undefined;
}

export interface AuditVerdict {
  readonly isIntact: boolean;
  readonly entries: number;
  /** Digest of the last entry: noted elsewhere, it tells a database that was put back. */
  readonly lastDigest: string;
  /** Where the chain breaks, and how. */
  readonly problem: AuditProblem | undefined;
  /** Of an intact chain, when entries were removed; undefined: none was, or nobody noted when. */
  readonly removal: AuditRemoval | undefined;
}

export interface AuditProblem {
  readonly sequence: number;
  readonly what: string;
}

export interface AuditRemoval {
  /** When the last removed entry was written. */
  readonly at: number;
  readonly removedAt: number;
  /** For how long entries were kept then. */
  readonly keptMs: number;
}
