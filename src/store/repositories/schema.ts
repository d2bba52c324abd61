import { OtherSchema } from "../errors.ts";
import { tables as budgets } from "./budgets/budget-schema.ts";
import { table as links } from "./control/links.ts";
import { table as responses } from "./response-store.ts";
import { tables as usage } from "./usage/usage-schema.ts";
import type { DatabaseFacts } from "../store.ts";

/** Accounts, applications, keys, users and sessions. */
const entities = `
  CREATE TABLE accounts (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    note TEXT NOT NULL,
    plans TEXT NOT NULL,
    max_keys INTEGER NOT NULL,
    -- What all keys of an account may use together; NULL: no limit.
    requests_per_minute INTEGER,
    tokens_per_minute INTEGER,
    -- IANA name.
    time_zone TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    disabled_at INTEGER,
    revision INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX accounts_by_age ON accounts (created_at, id);

  CREATE TABLE applications (
    id TEXT PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES accounts (id),
    environment TEXT NOT NULL,
    name TEXT NOT NULL,
    note TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    disabled_at INTEGER,
    -- Role of who disabled it.
    disabled_by TEXT,
    revision INTEGER NOT NULL,
    UNIQUE (account_id, environment, name)
  ) STRICT;
  CREATE INDEX applications_by_age ON applications (created_at, id);
  CREATE INDEX applications_by_account ON applications (account_id, created_at, id);
  CREATE INDEX applications_by_environment ON applications (environment, created_at, id);

  CREATE TABLE keys (
    id TEXT PRIMARY KEY,
    -- What people call it.
    name TEXT NOT NULL,
    application_id TEXT NOT NULL REFERENCES applications (id),
    -- Of the application, which never changes: lists of an account need it in an index.
    account_id TEXT NOT NULL REFERENCES accounts (id),
    plan TEXT NOT NULL,
    requests_per_minute INTEGER,
    tokens_per_minute INTEGER,
    provisioned_units INTEGER NOT NULL,
    -- NULL: the units guarantee nothing until a pool is set.
    provisioned_pool TEXT,
    -- Where the key's limits are counted: its own id, or what a key that was revoked leaves to it.
    limit_scope TEXT NOT NULL,
    allowed_models TEXT,
    allowed_networks TEXT,
    note TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    disabled_at INTEGER,
    -- Role of who disabled it.
    disabled_by TEXT,
    revoked_at INTEGER,
    revision INTEGER NOT NULL,
    changed_epoch INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX keys_by_age ON keys (created_at, id);
  CREATE INDEX keys_by_application ON keys (application_id, created_at, id);
  CREATE INDEX keys_by_account ON keys (account_id, created_at, id);
  CREATE INDEX keys_by_revocation ON keys (revoked_at) WHERE revoked_at IS NOT NULL;
  -- No two changes share an epoch, so that pages of changes can begin and end at any of them.
  CREATE UNIQUE INDEX keys_by_epoch ON keys (changed_epoch);
  CREATE INDEX keys_live_by_account ON keys (account_id) WHERE revoked_at IS NULL;
  CREATE INDEX keys_by_plan ON keys (plan, created_at, id);
  CREATE INDEX keys_by_pool ON keys (provisioned_pool, created_at, id)
    WHERE provisioned_pool IS NOT NULL;
  CREATE INDEX keys_by_expiry ON keys (expires_at)
    WHERE expires_at IS NOT NULL AND revoked_at IS NULL;
  CREATE INDEX keys_by_limit_scope ON keys (limit_scope) WHERE revoked_at IS NULL;

  -- Keys that were removed: who follows the changes must hear of them too.
  CREATE TABLE removed_keys (changed_epoch INTEGER PRIMARY KEY, key_id TEXT NOT NULL) STRICT;

  -- The scopes of keys that were revoked and then removed, for as long as they may count.
  CREATE TABLE left_limit_scopes (
    key_id TEXT PRIMARY KEY,
    limit_scope TEXT NOT NULL,
    account_id TEXT NOT NULL,
    application_id TEXT NOT NULL,
    revoked_at INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX left_limit_scopes_by_end ON left_limit_scopes (account_id, revoked_at);

  CREATE TABLE secrets (
    public_id TEXT PRIMARY KEY,
    key_id TEXT NOT NULL REFERENCES keys (id) ON DELETE CASCADE,
    digest BLOB NOT NULL,
    -- The mark of the pepper of the digest.
    pepper TEXT,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    last_used_at INTEGER
  ) STRICT;
  CREATE INDEX secrets_by_key ON secrets (key_id, created_at, public_id);
  CREATE INDEX secrets_by_end ON secrets (expires_at) WHERE expires_at IS NOT NULL;

  CREATE TABLE epochs (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT;
  INSERT INTO epochs VALUES ('keys', 0);

  CREATE TABLE users (
    id TEXT PRIMARY KEY,
    email TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    role TEXT NOT NULL,
    account_id TEXT REFERENCES accounts (id),
    password_hash TEXT,
    identity_issuer TEXT,
    identity_subject TEXT,
    created_at INTEGER NOT NULL,
    disabled_at INTEGER,
    last_sign_in_at INTEGER,
    revision INTEGER NOT NULL,
    UNIQUE (identity_issuer, identity_subject)
  ) STRICT;
  CREATE INDEX users_by_age ON users (created_at, id);
  CREATE INDEX users_by_account ON users (account_id, created_at, id);
  CREATE INDEX users_by_role ON users (role, created_at, id);

  CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    -- Where it was started.
    address TEXT,
    created_at INTEGER NOT NULL,
    last_seen_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX sessions_by_age ON sessions (created_at, id);
  CREATE INDEX sessions_by_user ON sessions (user_id, created_at, id);
  CREATE INDEX sessions_by_end ON sessions (expires_at);

  CREATE TABLE management_tokens (
    id TEXT PRIMARY KEY,
    user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    -- The token that it was made with.
    parent_id TEXT,
    name TEXT NOT NULL,
    public_id TEXT NOT NULL UNIQUE,
    digest BLOB NOT NULL,
    -- The mark of the pepper of the digest.
    pepper TEXT,
    scopes TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    last_used_at INTEGER,
    revoked_at INTEGER
  ) STRICT;
  CREATE INDEX management_tokens_by_age ON management_tokens (created_at, id);
  CREATE INDEX management_tokens_by_end ON management_tokens (expires_at);
  CREATE INDEX management_tokens_by_revocation ON management_tokens (revoked_at)
    WHERE revoked_at IS NOT NULL;
  CREATE INDEX management_tokens_by_user ON management_tokens (user_id, created_at, id);
  CREATE INDEX management_tokens_by_parent ON management_tokens (parent_id)
    WHERE parent_id IS NOT NULL;
`;

const audit = `
  CREATE TABLE audit (
    sequence INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    actor_kind TEXT NOT NULL,
    actor_id TEXT,
    actor_name TEXT NOT NULL,
    address TEXT,
    request_id TEXT,
    action TEXT NOT NULL,
    subject_type TEXT NOT NULL,
    subject_id TEXT NOT NULL,
    account_id TEXT,
    before_fields TEXT,
    after_fields TEXT,
    previous_digest TEXT NOT NULL,
    digest TEXT NOT NULL
  ) STRICT;
  CREATE INDEX audit_by_time ON audit (at, sequence);
  CREATE INDEX audit_by_account ON audit (account_id, sequence);
  CREATE INDEX audit_by_subject ON audit (subject_id, sequence);
  CREATE INDEX audit_by_actor ON audit (actor_id, sequence);
  CREATE INDEX audit_by_action ON audit (action, sequence);
`;

/** Stored answers under an idempotency key: of the control plane, and of calls. */
const replies = `
  CREATE TABLE replies (
    id TEXT PRIMARY KEY,
    request_digest TEXT NOT NULL,
    status INT NOT NULL,
    body BLOB,
    created_at INTEGER NOT NULL,
    shown_until INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX replies_by_age ON replies (created_at);

  -- Encrypted; the body is last, so that other columns skip it.
  CREATE TABLE call_replies (
    id TEXT NOT NULL PRIMARY KEY,
    account_id TEXT NOT NULL,
    request_digest TEXT NOT NULL,
    kept_at INTEGER NOT NULL,
    -- What it counts of the limit.
    bytes INTEGER NOT NULL,
    -- NULL: too large to be kept.
    body BLOB
  ) STRICT;
  CREATE INDEX call_replies_by_age ON call_replies (kept_at);
  -- The oldest of an account are found without sorting.
  CREATE INDEX call_replies_by_account ON call_replies (account_id, kept_at);

  -- Calls with an Idempotency-Key that are being made. Times by the clock of the database.
  CREATE TABLE call_claims (
    id TEXT NOT NULL PRIMARY KEY,
    -- The call that is made.
    holder TEXT NOT NULL,
    request_digest TEXT NOT NULL,
    -- How often others asked for it since its holder confirmed it.
    doubts INTEGER NOT NULL,
    -- When it was claimed, or the last doubt was counted.
    asked_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;

  -- The size of each account's stored answers, because scanning large rows is slow.
  CREATE TABLE call_reply_shares (
    account_id TEXT NOT NULL PRIMARY KEY,
    bytes INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX call_reply_shares_by_size ON call_reply_shares (bytes);
`;

/** What calls cost. */
const prices = `
  -- Never changed once published.
  CREATE TABLE price_tables (
    version INTEGER PRIMARY KEY,
    valid_from INTEGER NOT NULL,
    -- JSON: by target id.
    targets TEXT NOT NULL
  ) STRICT;
`;

const owners = `
  -- The owner of the database and the pepper of its keys. At most one row.
  CREATE TABLE installation (
    place INT PRIMARY KEY CHECK (place = 1),
    id TEXT NOT NULL,
    pepper_mark TEXT,
    -- Since when the noted pepper makes what is new; NULL: always.
    pepper_since INTEGER
  ) STRICT;

  -- Which machine runs a job, such as retention, and until when no other does.
  CREATE TABLE job_locks (
    job TEXT PRIMARY KEY,
    holder TEXT NOT NULL,
    held_until INTEGER NOT NULL
  ) STRICT;

  -- The gateway processes on the database.
  CREATE TABLE processes (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    number INTEGER NOT NULL,
    version TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    configured_at INTEGER NOT NULL,
    config_digest TEXT,
    -- What processes must have in common.
    limits_digest TEXT,
    pepper_marks TEXT,
    -- NULL: it has no keys yet.
    keys_epoch INTEGER,
    -- Names the process in the charges of its calls.
    charges_as TEXT,
    -- none, behind or done: whether it stores the calls of its machine, and has stored those left over.
    ingest TEXT NOT NULL,
    admin_url TEXT NOT NULL,
    -- NULL: it can serve.
    not_ready TEXT,
    degraded TEXT,
    -- By the clock of the database.
    signed_at INTEGER NOT NULL
  ) STRICT;
`;

/** All tables of both databases, in the words of SQLite, without triggers. Times are milliseconds since the epoch. */
export const tables: string = [
  entities,
  links,
  audit,
  replies,
  responses,
  usage,
  budgets,
  prices,
  owners,
].join("\n");

/** The version of the schema of both databases: raise it with each change of a released schema. */
export const schemaVersion = 1;

/** Throws `OtherSchema` for a database that another version of Sluice has made. */
export function refuseOtherSchema({
  path,
  version,
}: Pick<DatabaseFacts, "path" | "version">): void {
  if (version === 0 || version === schemaVersion) return;
  throw new OtherSchema(
    `the database ${path} has the schema ${version}, and this version of Sluice works with ` +
      `schema ${schemaVersion}. Please use the version that made it, or an empty database.`,
  );
}
