/**
 * Accounts, applications, users and the audit. Existing keys get an application for each of their
 * application names and environments, all in one account named `default`.
 */
export const controlPlane = `
  CREATE TABLE accounts (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    note TEXT NOT NULL,
    plans TEXT NOT NULL,
    max_keys INTEGER NOT NULL,
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

  ALTER TABLE secrets RENAME TO old_secrets;
  ALTER TABLE keys RENAME TO old_keys;
  DROP INDEX secrets_by_key;

  CREATE TABLE keys (
    id TEXT PRIMARY KEY,
    application_id TEXT NOT NULL REFERENCES applications (id),
    -- Of the application, which never changes: lists of an account need it in an index.
    account_id TEXT NOT NULL REFERENCES accounts (id),
    plan TEXT NOT NULL,
    requests_per_minute INTEGER,
    tokens_per_minute INTEGER,
    provisioned_units INTEGER NOT NULL,
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

  -- Keys that were removed: who follows the changes must hear of them too.
  CREATE TABLE removed_keys (changed_epoch INTEGER PRIMARY KEY, key_id TEXT NOT NULL) STRICT;

  CREATE TABLE secrets (
    public_id TEXT PRIMARY KEY,
    key_id TEXT NOT NULL REFERENCES keys (id) ON DELETE CASCADE,
    digest BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    last_used_at INTEGER
  ) STRICT;
  CREATE INDEX secrets_by_key ON secrets (key_id, created_at, public_id);
  CREATE INDEX secrets_by_end ON secrets (expires_at) WHERE expires_at IS NOT NULL;

  CREATE TABLE epochs (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT;
  INSERT INTO epochs SELECT 'keys', count(*) FROM old_keys;

  INSERT INTO accounts
    SELECT 'acct_default', 'default', '', '["pilot","standard"]', 1000, min(created_at), NULL, 1
    FROM old_keys HAVING count(*) > 0;
  INSERT INTO applications
    SELECT 'app_' || lower(hex(randomblob(8))), 'acct_default', environment, application, '',
      min(created_at), NULL, NULL, 1
    FROM old_keys GROUP BY environment, application;
  INSERT INTO keys
    SELECT old_keys.id, applications.id, 'acct_default', plan, requests_per_minute,
      tokens_per_minute, 0, NULL, NULL, '', old_keys.created_at, NULL, NULL, NULL, revoked_at, 1,
      row_number() OVER (ORDER BY old_keys.created_at, old_keys.id)
    FROM old_keys JOIN applications
      ON applications.environment = old_keys.environment
      AND applications.name = old_keys.application;
  INSERT INTO secrets
    SELECT public_id, key_id, digest, created_at, expires_at, NULL FROM old_secrets;
  DROP TABLE old_secrets;
  DROP TABLE old_keys;

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

  CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    created_at INTEGER NOT NULL,
    last_seen_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX sessions_by_user ON sessions (user_id);
  CREATE INDEX sessions_by_end ON sessions (expires_at);

  CREATE TABLE management_tokens (
    id TEXT PRIMARY KEY,
    user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    public_id TEXT NOT NULL UNIQUE,
    digest BLOB NOT NULL,
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
  CREATE INDEX audit_by_account ON audit (account_id, sequence);
  CREATE INDEX audit_by_subject ON audit (subject_id, sequence);
  CREATE INDEX audit_by_actor ON audit (actor_id, sequence);
  CREATE INDEX audit_by_action ON audit (action, sequence);

  -- Where the chain begins: entries up to here were removed when their time was over.
  CREATE TABLE audit_anchor (sequence INTEGER NOT NULL, digest TEXT NOT NULL) STRICT;
  CREATE TRIGGER audit_is_never_changed BEFORE UPDATE ON audit
    BEGIN SELECT raise(ABORT, 'the audit is append-only'); END;
  CREATE TRIGGER audit_is_never_cut BEFORE DELETE ON audit
    WHEN NOT EXISTS (SELECT 1 FROM audit_anchor WHERE audit_anchor.sequence >= old.sequence)
    BEGIN SELECT raise(ABORT, 'the audit is append-only'); END;

  CREATE TABLE replies (
    id TEXT PRIMARY KEY,
    request_digest TEXT NOT NULL,
    status INTEGER NOT NULL,
    body BLOB,
    created_at INTEGER NOT NULL,
    shown_until INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX replies_by_age ON replies (created_at);

  ALTER TABLE usage ADD COLUMN account_id TEXT NOT NULL DEFAULT '';
  ALTER TABLE usage ADD COLUMN application_id TEXT NOT NULL DEFAULT '';
  UPDATE usage SET account_id = applications.account_id, application_id = applications.id
    FROM keys JOIN applications ON applications.id = keys.application_id
    WHERE keys.id = usage.key_id;
`;
