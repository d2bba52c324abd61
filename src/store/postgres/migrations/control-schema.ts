import { text } from "./columns.ts";

/** Accounts, applications, keys, users and the audit. */
export const controlSchema = `
  CREATE TABLE accounts (
    id ${text} PRIMARY KEY,
    name ${text} NOT NULL UNIQUE,
    note ${text} NOT NULL,
    plans ${text} NOT NULL,
    max_keys bigint NOT NULL,
    created_at bigint NOT NULL,
    disabled_at bigint,
    revision bigint NOT NULL,
    requests_per_minute bigint,
    tokens_per_minute bigint
  );
  CREATE INDEX accounts_by_age ON accounts (created_at, id);

  CREATE TABLE applications (
    id ${text} PRIMARY KEY,
    account_id ${text} NOT NULL REFERENCES accounts (id),
    environment ${text} NOT NULL,
    name ${text} NOT NULL,
    note ${text} NOT NULL,
    created_at bigint NOT NULL,
    disabled_at bigint,
    -- Role of who disabled it.
    disabled_by ${text},
    revision bigint NOT NULL,
    UNIQUE (account_id, environment, name)
  );
  CREATE INDEX applications_by_age ON applications (created_at, id);
  CREATE INDEX applications_by_account ON applications (account_id, created_at, id);
  CREATE INDEX applications_by_environment ON applications (environment, created_at, id);

  CREATE TABLE keys (
    id ${text} PRIMARY KEY,
    application_id ${text} NOT NULL REFERENCES applications (id),
    -- Of the application, which never changes: lists of an account need it in an index.
    account_id ${text} NOT NULL REFERENCES accounts (id),
    plan ${text} NOT NULL,
    requests_per_minute bigint,
    tokens_per_minute bigint,
    provisioned_units bigint NOT NULL,
    allowed_models ${text},
    allowed_networks ${text},
    note ${text} NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint,
    disabled_at bigint,
    -- Role of who disabled it.
    disabled_by ${text},
    revoked_at bigint,
    revision bigint NOT NULL,
    changed_epoch bigint NOT NULL,
    provisioned_pool ${text},
    limit_scope ${text} NOT NULL DEFAULT '',
    name ${text} NOT NULL DEFAULT ''
  );
  CREATE INDEX keys_by_age ON keys (created_at, id);
  CREATE INDEX keys_by_application ON keys (application_id, created_at, id);
  CREATE INDEX keys_by_account ON keys (account_id, created_at, id);
  CREATE INDEX keys_by_revocation ON keys (revoked_at) WHERE revoked_at IS NOT NULL;
  CREATE UNIQUE INDEX keys_by_epoch ON keys (changed_epoch);
  CREATE INDEX keys_live_by_account ON keys (account_id) WHERE revoked_at IS NULL;
  CREATE INDEX keys_by_plan ON keys (plan, created_at, id);
  CREATE INDEX keys_by_pool ON keys (provisioned_pool, created_at, id)
    WHERE provisioned_pool IS NOT NULL;
  CREATE INDEX keys_by_limit_scope ON keys (limit_scope) WHERE revoked_at IS NULL;

  CREATE TABLE removed_keys (
    changed_epoch bigint PRIMARY KEY,
    key_id ${text} NOT NULL
  );

  CREATE TABLE secrets (
    public_id ${text} PRIMARY KEY,
    key_id ${text} NOT NULL REFERENCES keys (id) ON DELETE CASCADE,
    digest bytea NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint,
    last_used_at bigint,
    pepper ${text}
  );
  CREATE INDEX secrets_by_key ON secrets (key_id, created_at, public_id);
  CREATE INDEX secrets_by_end ON secrets (expires_at) WHERE expires_at IS NOT NULL;

  CREATE TABLE epochs (
    name ${text} PRIMARY KEY,
    value bigint NOT NULL
  );

  CREATE TABLE left_limit_scopes (
    key_id ${text} PRIMARY KEY,
    limit_scope ${text} NOT NULL,
    account_id ${text} NOT NULL,
    application_id ${text} NOT NULL,
    revoked_at bigint NOT NULL
  );
  CREATE INDEX left_limit_scopes_by_end ON left_limit_scopes (account_id, revoked_at);

  CREATE TABLE users (
    id ${text} PRIMARY KEY,
    email ${text} NOT NULL UNIQUE,
    name ${text} NOT NULL,
    role ${text} NOT NULL,
    account_id ${text} REFERENCES accounts (id),
    password_hash ${text},
    identity_issuer ${text},
    identity_subject ${text},
    created_at bigint NOT NULL,
    disabled_at bigint,
    last_sign_in_at bigint,
    revision bigint NOT NULL,
    UNIQUE (identity_issuer, identity_subject)
  );
  CREATE INDEX users_by_age ON users (created_at, id);
  CREATE INDEX users_by_account ON users (account_id, created_at, id);
  CREATE INDEX users_by_role ON users (role, created_at, id);

  CREATE TABLE sessions (
    id ${text} PRIMARY KEY,
    user_id ${text} NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    created_at bigint NOT NULL,
    last_seen_at bigint NOT NULL,
    expires_at bigint NOT NULL
  );
  CREATE INDEX sessions_by_user ON sessions (user_id);
  CREATE INDEX sessions_by_end ON sessions (expires_at);

  CREATE TABLE management_tokens (
    id ${text} PRIMARY KEY,
    user_id ${text} NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    name ${text} NOT NULL,
    public_id ${text} NOT NULL UNIQUE,
    digest bytea NOT NULL,
    scopes ${text} NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    last_used_at bigint,
    revoked_at bigint,
    parent_id ${text},
    pepper ${text}
  );
  CREATE INDEX management_tokens_by_age ON management_tokens (created_at, id);
  CREATE INDEX management_tokens_by_end ON management_tokens (expires_at);
  CREATE INDEX management_tokens_by_revocation ON management_tokens (revoked_at)
    WHERE revoked_at IS NOT NULL;
  CREATE INDEX management_tokens_by_user ON management_tokens (user_id, created_at, id);
  CREATE INDEX management_tokens_by_parent ON management_tokens (parent_id)
    WHERE parent_id IS NOT NULL;

  CREATE TABLE audit (
    sequence bigint PRIMARY KEY,
    at bigint NOT NULL,
    actor_kind ${text} NOT NULL,
    actor_id ${text},
    actor_name ${text} NOT NULL,
    address ${text},
    request_id ${text},
    action ${text} NOT NULL,
    subject_type ${text} NOT NULL,
    subject_id ${text} NOT NULL,
    account_id ${text},
    before_fields ${text},
    after_fields ${text},
    previous_digest ${text} NOT NULL,
    digest ${text} NOT NULL,
    pepper ${text},
    seal ${text}
  );
  CREATE INDEX audit_by_account ON audit (account_id, sequence);
  CREATE INDEX audit_by_subject ON audit (subject_id, sequence);
  CREATE INDEX audit_by_actor ON audit (actor_id, sequence);
  CREATE INDEX audit_by_action ON audit (action, sequence);

  CREATE TABLE audit_anchor (
    sequence bigint NOT NULL,
    digest ${text} NOT NULL,
    at bigint,
    removed_at bigint,
    kept_ms bigint,
    pepper ${text},
    seal ${text}
  );

  CREATE TABLE audit_head (
    place smallint PRIMARY KEY CHECK (place = 1),
    sequence bigint NOT NULL,
    digest ${text} NOT NULL,
    plain_until bigint NOT NULL,
    pepper ${text} NOT NULL,
    seal ${text} NOT NULL
  );

  CREATE TABLE installation (
    place smallint PRIMARY KEY CHECK (place = 1),
    id ${text} NOT NULL,
    pepper_mark ${text},
    pepper_since bigint
  );

  CREATE TABLE erased_accounts (
    id ${text} PRIMARY KEY,
    at bigint NOT NULL
  );

  CREATE TABLE schema_version (
    place smallint PRIMARY KEY CHECK (place = 1),
    version bigint NOT NULL
  );
  INSERT INTO schema_version VALUES (1, 0);
  INSERT INTO epochs VALUES ('keys', 0);

  CREATE FUNCTION refuse_audit_change() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN RAISE EXCEPTION 'the audit is append-only'; END $$;
  CREATE TRIGGER audit_is_never_changed BEFORE UPDATE OR TRUNCATE ON audit
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_audit_change();
  CREATE FUNCTION refuse_audit_cut() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF EXISTS (SELECT 1 FROM audit_anchor WHERE audit_anchor.sequence >= old.sequence) THEN
        RETURN old;
      END IF;
      RAISE EXCEPTION 'the audit is append-only';
    END $$;
  CREATE TRIGGER audit_is_never_cut BEFORE DELETE ON audit
    FOR EACH ROW EXECUTE FUNCTION refuse_audit_cut();
`;
