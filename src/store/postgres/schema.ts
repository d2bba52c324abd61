/**
 * Sorted by bytes, as in SQLite: a collation of the operating system would be slower, and its
 * upgrades break indexes.
 */
const text = 'text COLLATE "C"';

/** What the columns mean stands in the schema of SQLite, which has the same. */
const entities = `
  CREATE TABLE accounts (
    id ${text} PRIMARY KEY,
    name ${text} NOT NULL UNIQUE,
    note ${text} NOT NULL,
    plans ${text} NOT NULL,
    max_keys bigint NOT NULL,
    requests_per_minute bigint,
    tokens_per_minute bigint,
    created_at bigint NOT NULL,
    disabled_at bigint,
    revision bigint NOT NULL
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
    disabled_by ${text},
    revision bigint NOT NULL,
    UNIQUE (account_id, environment, name)
  );
  CREATE INDEX applications_by_age ON applications (created_at, id);
  CREATE INDEX applications_by_account ON applications (account_id, created_at, id);
  CREATE INDEX applications_by_environment ON applications (environment, created_at, id);

  CREATE TABLE keys (
    id ${text} PRIMARY KEY,
    name ${text} NOT NULL,
    application_id ${text} NOT NULL REFERENCES applications (id),
    account_id ${text} NOT NULL REFERENCES accounts (id),
    plan ${text} NOT NULL,
    requests_per_minute bigint,
    tokens_per_minute bigint,
    provisioned_units bigint NOT NULL,
    provisioned_pool ${text},
    limit_scope ${text} NOT NULL,
    allowed_models ${text},
    allowed_networks ${text},
    note ${text} NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint,
    disabled_at bigint,
    disabled_by ${text},
    revoked_at bigint,
    revision bigint NOT NULL,
    changed_epoch bigint NOT NULL
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

  CREATE TABLE removed_keys (changed_epoch bigint PRIMARY KEY, key_id ${text} NOT NULL);

  CREATE TABLE secrets (
    public_id ${text} PRIMARY KEY,
    key_id ${text} NOT NULL REFERENCES keys (id) ON DELETE CASCADE,
    digest bytea NOT NULL,
    pepper ${text},
    created_at bigint NOT NULL,
    expires_at bigint,
    last_used_at bigint
  );
  CREATE INDEX secrets_by_key ON secrets (key_id, created_at, public_id);
  CREATE INDEX secrets_by_end ON secrets (expires_at) WHERE expires_at IS NOT NULL;

  CREATE TABLE epochs (name ${text} PRIMARY KEY, value bigint NOT NULL);
  INSERT INTO epochs VALUES ('keys', 0);

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
    parent_id ${text},
    name ${text} NOT NULL,
    public_id ${text} NOT NULL UNIQUE,
    digest bytea NOT NULL,
    pepper ${text},
    scopes ${text} NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    last_used_at bigint,
    revoked_at bigint
  );
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
    digest ${text} NOT NULL
  );
  CREATE INDEX audit_by_time ON audit (at, sequence);
  CREATE INDEX audit_by_account ON audit (account_id, sequence);
  CREATE INDEX audit_by_subject ON audit (subject_id, sequence);
  CREATE INDEX audit_by_actor ON audit (actor_id, sequence);
  CREATE INDEX audit_by_action ON audit (action, sequence);

  CREATE FUNCTION refuse_audit_change() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN RAISE EXCEPTION 'the audit is append-only'; END $$;
  CREATE TRIGGER audit_is_never_changed BEFORE UPDATE OR TRUNCATE ON audit
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_audit_change();
  CREATE FUNCTION refuse_audit_cut() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF old.sequence < (SELECT max(sequence) FROM audit) THEN RETURN old; END IF;
      RAISE EXCEPTION 'the audit is append-only';
    END $$;
  CREATE TRIGGER audit_is_never_cut BEFORE DELETE ON audit
    FOR EACH ROW EXECUTE FUNCTION refuse_audit_cut();
`;

const replies = `
  CREATE TABLE replies (
    id ${text} PRIMARY KEY,
    request_digest ${text} NOT NULL,
    status smallint NOT NULL,
    body bytea,
    created_at bigint NOT NULL,
    shown_until bigint NOT NULL
  );
  CREATE INDEX replies_by_age ON replies (created_at);

  CREATE TABLE call_replies (
    id ${text} NOT NULL PRIMARY KEY,
    account_id ${text} NOT NULL,
    request_digest ${text} NOT NULL,
    kept_at bigint NOT NULL,
    bytes bigint NOT NULL,
    body bytea
  );
  CREATE INDEX call_replies_by_age ON call_replies (kept_at);
  CREATE INDEX call_replies_by_account ON call_replies (account_id, kept_at);

  -- Times by the clock of the server.
  CREATE TABLE call_claims (
    id ${text} NOT NULL PRIMARY KEY,
    holder ${text} NOT NULL,
    request_digest ${text} NOT NULL,
    doubts bigint NOT NULL,
    asked_at bigint NOT NULL
  );

  CREATE TABLE call_replies_sum (bytes bigint NOT NULL);

  CREATE TABLE call_reply_shares (account_id ${text} NOT NULL PRIMARY KEY, bytes bigint NOT NULL);
  CREATE INDEX call_reply_shares_by_size ON call_reply_shares (bytes);
  INSERT INTO call_replies_sum VALUES (0);

  CREATE FUNCTION count_call_reply() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      UPDATE call_replies_sum SET bytes = bytes + new.bytes;
      INSERT INTO call_reply_shares AS share VALUES (new.account_id, new.bytes)
        ON CONFLICT (account_id) DO UPDATE SET bytes = share.bytes + excluded.bytes;
      RETURN NULL;
    END $$;
  CREATE TRIGGER call_replies_added AFTER INSERT ON call_replies
    FOR EACH ROW EXECUTE FUNCTION count_call_reply();
  CREATE FUNCTION discount_call_reply() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      UPDATE call_replies_sum SET bytes = bytes - old.bytes;
      UPDATE call_reply_shares SET bytes = bytes - old.bytes WHERE account_id = old.account_id;
      DELETE FROM call_reply_shares WHERE account_id = old.account_id AND bytes <= 0;
      RETURN NULL;
    END $$;
  CREATE TRIGGER call_replies_removed AFTER DELETE ON call_replies
    FOR EACH ROW EXECUTE FUNCTION discount_call_reply();
`;

/** The ledger and its sums. */
const usage = `
  CREATE TABLE usage (
    sequence bigint NOT NULL UNIQUE GENERATED ALWAYS AS IDENTITY,
    id ${text} PRIMARY KEY,
    started_at bigint NOT NULL,
    environment ${text} NOT NULL,
    account_id ${text} NOT NULL,
    application_id ${text} NOT NULL,
    application ${text} NOT NULL,
    key_id ${text} NOT NULL,
    model ${text} NOT NULL,
    target ${text},
    capacity_class ${text} NOT NULL,
    reserved_tokens bigint,
    input_tokens bigint NOT NULL,
    output_tokens bigint NOT NULL,
    cached_input_tokens bigint NOT NULL,
    cache_write_tokens bigint NOT NULL,
    usage_source ${text} NOT NULL,
    outcome ${text} NOT NULL,
    status smallint NOT NULL,
    code ${text},
    is_streamed smallint NOT NULL,
    attempts integer NOT NULL,
    first_event_ms double precision,
    duration_ms double precision NOT NULL,
    routing ${text},
    may_be_billed_twice smallint NOT NULL
  );
  CREATE INDEX usage_by_time ON usage (started_at);
  CREATE INDEX usage_by_key ON usage (key_id, started_at);
  CREATE INDEX usage_by_account ON usage (account_id, started_at);
  CREATE INDEX usage_billed_twice ON usage (started_at, id) WHERE may_be_billed_twice = 1;

  CREATE TABLE usage_groups (
    id bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    environment ${text} NOT NULL,
    account_id ${text} NOT NULL,
    application_id ${text} NOT NULL,
    key_id ${text} NOT NULL,
    model ${text} NOT NULL,
    target ${text} NOT NULL,
    capacity_class ${text} NOT NULL,
    outcome ${text} NOT NULL,
    status smallint NOT NULL,
    code ${text} NOT NULL,
    UNIQUE (account_id, key_id, model, target, capacity_class, outcome, status, code,
      application_id, environment)
  );
  CREATE INDEX usage_groups_by_key ON usage_groups (key_id);
  CREATE INDEX usage_groups_by_application ON usage_groups (application_id);

  CREATE TABLE usage_sums (
    grain ${text} NOT NULL,
    at bigint NOT NULL,
    group_id bigint NOT NULL,
    calls bigint NOT NULL,
    failed_calls bigint NOT NULL,
    abandoned_calls bigint NOT NULL,
    input_tokens bigint NOT NULL,
    output_tokens bigint NOT NULL,
    cached_input_tokens bigint NOT NULL,
    cache_write_tokens bigint NOT NULL,
    estimated_tokens bigint NOT NULL,
    durations ${text} NOT NULL,
    first_events ${text} NOT NULL,
    PRIMARY KEY (grain, at, group_id)
  );
  CREATE INDEX usage_sums_by_group ON usage_sums (group_id, grain, at);

  CREATE TABLE usage_horizons (
    step ${text} PRIMARY KEY,
    at bigint NOT NULL
  );
  INSERT INTO usage_horizons VALUES ('call', 0), ('hour', 0);

  CREATE TABLE event_cursor (
    place smallint PRIMARY KEY CHECK (place = 1),
    position bigint NOT NULL,
    holder ${text} NOT NULL,
    held_until bigint NOT NULL
  );

  CREATE TABLE erased_accounts (id ${text} PRIMARY KEY, at bigint NOT NULL);
`;

const owners = `
  CREATE TABLE installation (
    place smallint PRIMARY KEY CHECK (place = 1),
    id ${text} NOT NULL,
    pepper_mark ${text},
    pepper_since bigint
  );

  CREATE TABLE schema_version (
    place smallint PRIMARY KEY CHECK (place = 1),
    version bigint NOT NULL
  );

  CREATE TABLE processes (
    id ${text} PRIMARY KEY,
    name ${text} NOT NULL,
    number bigint NOT NULL,
    version ${text} NOT NULL,
    started_at bigint NOT NULL,
    configured_at bigint NOT NULL,
    config_digest ${text},
    -- What processes must have in common.
    limits_digest ${text},
    pepper_marks ${text},
    -- NULL: it has no keys yet.
    keys_epoch bigint,
    admin_url ${text} NOT NULL,
    -- NULL: it can serve.
    not_ready ${text},
    degraded ${text},
    -- By the clock of the server.
    signed_at bigint NOT NULL
  );
`;

/** `schema_version` has the version. */
export const schema: string = [entities, audit, replies, usage, owners].join("\n");
