/** What the databases call differently in a schema. */
export interface SqlWords {
  readonly text: string;
  readonly integer: string;
  /** For few values. */
  readonly small: string;
  readonly real: string;
  readonly bytes: string;
  /** A primary key that the database counts up. */
  readonly numbered: string;
  /** What ends a table, and one that lies in the order of its key. */
  readonly plain: string;
  readonly clustered: string;
}

/** All tables, without triggers. Times are milliseconds since the epoch. */
export function tablesOf(words: SqlWords): string {
  return [entities, audit, replies, usage, owners].map((part) => part(words)).join("\n");
}

/** Accounts, applications, keys, users and sessions. */
const entities = ({ text, integer, bytes, plain }: SqlWords) => `
  CREATE TABLE accounts (
    id ${text} PRIMARY KEY,
    name ${text} NOT NULL UNIQUE,
    note ${text} NOT NULL,
    plans ${text} NOT NULL,
    max_keys ${integer} NOT NULL,
    -- What all keys of an account may use together; NULL: no limit.
    requests_per_minute ${integer},
    tokens_per_minute ${integer},
    created_at ${integer} NOT NULL,
    disabled_at ${integer},
    revision ${integer} NOT NULL
  ) ${plain};
  CREATE INDEX accounts_by_age ON accounts (created_at, id);

  CREATE TABLE applications (
    id ${text} PRIMARY KEY,
    account_id ${text} NOT NULL REFERENCES accounts (id),
    environment ${text} NOT NULL,
    name ${text} NOT NULL,
    note ${text} NOT NULL,
    created_at ${integer} NOT NULL,
    disabled_at ${integer},
    -- Role of who disabled it.
    disabled_by ${text},
    revision ${integer} NOT NULL,
    UNIQUE (account_id, environment, name)
  ) ${plain};
  CREATE INDEX applications_by_age ON applications (created_at, id);
  CREATE INDEX applications_by_account ON applications (account_id, created_at, id);
  CREATE INDEX applications_by_environment ON applications (environment, created_at, id);

  CREATE TABLE keys (
    id ${text} PRIMARY KEY,
    -- What people call it.
    name ${text} NOT NULL,
    application_id ${text} NOT NULL REFERENCES applications (id),
    -- Of the application, which never changes: lists of an account need it in an index.
    account_id ${text} NOT NULL REFERENCES accounts (id),
    plan ${text} NOT NULL,
    requests_per_minute ${integer},
    tokens_per_minute ${integer},
    provisioned_units ${integer} NOT NULL,
    -- NULL: the units guarantee nothing until a pool is set.
    provisioned_pool ${text},
    -- Where the key's limits are counted: its own id, or what a key that was revoked leaves to it.
    limit_scope ${text} NOT NULL,
    allowed_models ${text},
    allowed_networks ${text},
    note ${text} NOT NULL,
    created_at ${integer} NOT NULL,
    expires_at ${integer},
    disabled_at ${integer},
    -- Role of who disabled it.
    disabled_by ${text},
    revoked_at ${integer},
    revision ${integer} NOT NULL,
    changed_epoch ${integer} NOT NULL
  ) ${plain};
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
  CREATE INDEX keys_by_limit_scope ON keys (limit_scope) WHERE revoked_at IS NULL;

  -- Keys that were removed: who follows the changes must hear of them too.
  CREATE TABLE removed_keys (changed_epoch ${integer} PRIMARY KEY, key_id ${text} NOT NULL) ${plain};

  -- The scopes of keys that were revoked and then removed, for as long as they may count.
  CREATE TABLE left_limit_scopes (
    key_id ${text} PRIMARY KEY,
    limit_scope ${text} NOT NULL,
    account_id ${text} NOT NULL,
    application_id ${text} NOT NULL,
    revoked_at ${integer} NOT NULL
  ) ${plain};
  CREATE INDEX left_limit_scopes_by_end ON left_limit_scopes (account_id, revoked_at);

  CREATE TABLE secrets (
    public_id ${text} PRIMARY KEY,
    key_id ${text} NOT NULL REFERENCES keys (id) ON DELETE CASCADE,
    digest ${bytes} NOT NULL,
    -- The mark of the pepper of the digest.
    pepper ${text},
    created_at ${integer} NOT NULL,
    expires_at ${integer},
    last_used_at ${integer}
  ) ${plain};
  CREATE INDEX secrets_by_key ON secrets (key_id, created_at, public_id);
  CREATE INDEX secrets_by_end ON secrets (expires_at) WHERE expires_at IS NOT NULL;

  CREATE TABLE epochs (name ${text} PRIMARY KEY, value ${integer} NOT NULL) ${plain};
  INSERT INTO epochs VALUES ('keys', 0);

  CREATE TABLE users (
    id ${text} PRIMARY KEY,
    email ${text} NOT NULL UNIQUE,
    name ${text} NOT NULL,
    role ${text} NOT NULL,
    account_id ${text} REFERENCES accounts (id),
    password_hash ${text},
    identity_issuer ${text},
    identity_subject ${text},
    created_at ${integer} NOT NULL,
    disabled_at ${integer},
    last_sign_in_at ${integer},
    revision ${integer} NOT NULL,
    UNIQUE (identity_issuer, identity_subject)
  ) ${plain};
  CREATE INDEX users_by_age ON users (created_at, id);
  CREATE INDEX users_by_account ON users (account_id, created_at, id);
  CREATE INDEX users_by_role ON users (role, created_at, id);

  CREATE TABLE sessions (
    id ${text} PRIMARY KEY,
    user_id ${text} NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    created_at ${integer} NOT NULL,
    last_seen_at ${integer} NOT NULL,
    expires_at ${integer} NOT NULL
  ) ${plain};
  CREATE INDEX sessions_by_user ON sessions (user_id);
  CREATE INDEX sessions_by_end ON sessions (expires_at);

  CREATE TABLE management_tokens (
    id ${text} PRIMARY KEY,
    user_id ${text} NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    -- The token that it was made with.
    parent_id ${text},
    name ${text} NOT NULL,
    public_id ${text} NOT NULL UNIQUE,
    digest ${bytes} NOT NULL,
    -- The mark of the pepper of the digest.
    pepper ${text},
    scopes ${text} NOT NULL,
    created_at ${integer} NOT NULL,
    expires_at ${integer} NOT NULL,
    last_used_at ${integer},
    revoked_at ${integer}
  ) ${plain};
  CREATE INDEX management_tokens_by_age ON management_tokens (created_at, id);
  CREATE INDEX management_tokens_by_end ON management_tokens (expires_at);
  CREATE INDEX management_tokens_by_revocation ON management_tokens (revoked_at)
    WHERE revoked_at IS NOT NULL;
  CREATE INDEX management_tokens_by_user ON management_tokens (user_id, created_at, id);
  CREATE INDEX management_tokens_by_parent ON management_tokens (parent_id)
    WHERE parent_id IS NOT NULL;
`;

const audit = ({ text, integer, plain }: SqlWords) => `
  CREATE TABLE audit (
    sequence ${integer} PRIMARY KEY,
    at ${integer} NOT NULL,
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
  ) ${plain};
  CREATE INDEX audit_by_time ON audit (at, sequence);
  CREATE INDEX audit_by_account ON audit (account_id, sequence);
  CREATE INDEX audit_by_subject ON audit (subject_id, sequence);
  CREATE INDEX audit_by_actor ON audit (actor_id, sequence);
  CREATE INDEX audit_by_action ON audit (action, sequence);
`;

/** Stored answers under an idempotency key: of the control plane, and of calls. */
const replies = ({ text, integer, small, bytes, plain, clustered }: SqlWords) => `
  CREATE TABLE replies (
    id ${text} PRIMARY KEY,
    request_digest ${text} NOT NULL,
    status ${small} NOT NULL,
    body ${bytes},
    created_at ${integer} NOT NULL,
    shown_until ${integer} NOT NULL
  ) ${plain};
  CREATE INDEX replies_by_age ON replies (created_at);

  -- Encrypted; the body is last, so that other columns skip it.
  CREATE TABLE call_replies (
    id ${text} NOT NULL PRIMARY KEY,
    account_id ${text} NOT NULL,
    request_digest ${text} NOT NULL,
    kept_at ${integer} NOT NULL,
    -- What it counts of the limit.
    bytes ${integer} NOT NULL,
    -- NULL: too large to be kept.
    body ${bytes}
  ) ${plain};
  CREATE INDEX call_replies_by_age ON call_replies (kept_at);
  -- The oldest of an account are found without sorting.
  CREATE INDEX call_replies_by_account ON call_replies (account_id, kept_at);

  -- Calls with an Idempotency-Key that are being made. Times by the clock of the database.
  CREATE TABLE call_claims (
    id ${text} NOT NULL PRIMARY KEY,
    -- The call that is made.
    holder ${text} NOT NULL,
    request_digest ${text} NOT NULL,
    -- How often others asked for it since its holder confirmed it.
    doubts ${integer} NOT NULL,
    -- When it was claimed, or the last doubt was counted.
    asked_at ${integer} NOT NULL
  ) ${clustered};

  -- The size of all stored answers and of each account's, of which the largest is evicted from.
  -- Both are kept by triggers, because scanning large rows is slow.
  CREATE TABLE call_replies_sum (bytes ${integer} NOT NULL) ${plain};
  INSERT INTO call_replies_sum VALUES (0);
  CREATE TABLE call_reply_shares (
    account_id ${text} NOT NULL PRIMARY KEY,
    bytes ${integer} NOT NULL
  ) ${clustered};
  CREATE INDEX call_reply_shares_by_size ON call_reply_shares (bytes);
`;

/** The ledger and its sums. */
const usage = ({ text, integer, small, real, numbered, plain, clustered }: SqlWords) => `
  CREATE TABLE usage (
    -- The order of storing.
    sequence ${numbered},
    id ${text} NOT NULL UNIQUE,
    started_at ${integer} NOT NULL,
    environment ${text} NOT NULL,
    account_id ${text} NOT NULL,
    application_id ${text} NOT NULL,
    application ${text} NOT NULL,
    key_id ${text} NOT NULL,
    model ${text} NOT NULL,
    target ${text},
    capacity_class ${text} NOT NULL,
    -- What admission reserved; NULL: unknown.
    reserved_tokens ${integer},
    input_tokens ${integer} NOT NULL,
    output_tokens ${integer} NOT NULL,
    cached_input_tokens ${integer} NOT NULL,
    -- Input that an upstream wrote to its cache, which costs more than other input.
    cache_write_tokens ${integer} NOT NULL,
    usage_source ${text} NOT NULL,
    outcome ${text} NOT NULL,
    status ${small} NOT NULL,
    code ${text},
    is_streamed ${small} NOT NULL,
    attempts ${integer} NOT NULL,
    first_event_ms ${real},
    duration_ms ${real} NOT NULL,
    -- JSON of domain/usage/call-routing.ts; NULL for one target, one attempt, answered.
    routing ${text},
    may_be_billed_twice ${small} NOT NULL
  ) ${plain};
  -- Lists by model, application and the rest go by time, over the days and hours with such calls.
  CREATE INDEX usage_by_time ON usage (started_at);
  CREATE INDEX usage_by_key ON usage (key_id, started_at);
  CREATE INDEX usage_by_account ON usage (account_id, started_at);
  -- They are rare: the list of them follows this.
  CREATE INDEX usage_billed_twice ON usage (started_at, id) WHERE may_be_billed_twice = 1;

  -- What calls are told apart by in sums. An absent target or code is empty.
  CREATE TABLE usage_groups (
    id ${numbered},
    environment ${text} NOT NULL,
    account_id ${text} NOT NULL,
    application_id ${text} NOT NULL,
    key_id ${text} NOT NULL,
    model ${text} NOT NULL,
    target ${text} NOT NULL,
    capacity_class ${text} NOT NULL,
    outcome ${text} NOT NULL,
    status ${small} NOT NULL,
    code ${text} NOT NULL,
    UNIQUE (account_id, key_id, model, target, capacity_class, outcome, status, code,
      application_id, environment)
  ) ${plain};
  CREATE INDEX usage_groups_by_key ON usage_groups (key_id);
  CREATE INDEX usage_groups_by_application ON usage_groups (application_id);

  -- The calls of each group, once by the hour and once by the day, its grain. Time comes before the
  -- group: what is written together lies together.
  CREATE TABLE usage_sums (
    grain ${text} NOT NULL,
    at ${integer} NOT NULL,
    group_id ${integer} NOT NULL,
    calls ${integer} NOT NULL,
    failed_calls ${integer} NOT NULL,
    abandoned_calls ${integer} NOT NULL,
    input_tokens ${integer} NOT NULL,
    output_tokens ${integer} NOT NULL,
    cached_input_tokens ${integer} NOT NULL,
    cache_write_tokens ${integer} NOT NULL,
    estimated_tokens ${integer} NOT NULL,
    -- Latencies are texts of domain/usage/latency-histogram.ts.
    durations ${text} NOT NULL,
    first_events ${text} NOT NULL,
    PRIMARY KEY (grain, at, group_id)
  ) ${clustered};
  CREATE INDEX usage_sums_by_group ON usage_sums (group_id, grain, at);

  -- Up to when calls and the sums of hours were removed, since their time was over.
  CREATE TABLE usage_horizons (step ${text} PRIMARY KEY, at ${integer} NOT NULL) ${plain};
  INSERT INTO usage_horizons VALUES ('call', 0), ('hour', 0);

  -- Up to where calls were delivered to the receiver of events, and which gateway delivers them.
  CREATE TABLE event_cursor (
    place ${small} PRIMARY KEY CHECK (place = 1),
    position ${integer} NOT NULL,
    holder ${text} NOT NULL,
    held_until ${integer} NOT NULL
  ) ${plain};

  -- Calls of these accounts may still be on their way; they are not to be stored any more.
  CREATE TABLE erased_accounts (id ${text} PRIMARY KEY, at ${integer} NOT NULL) ${clustered};
`;

const owners = ({ text, integer, small, plain }: SqlWords) => `
  -- The owner of the database and the pepper of its keys. At most one row.
  CREATE TABLE installation (
    place ${small} PRIMARY KEY CHECK (place = 1),
    id ${text} NOT NULL,
    pepper_mark ${text},
    -- Since when the noted pepper makes what is new; NULL: always.
    pepper_since ${integer}
  ) ${plain};

  -- The gateway processes on the database.
  CREATE TABLE processes (
    id ${text} PRIMARY KEY,
    name ${text} NOT NULL,
    number ${integer} NOT NULL,
    version ${text} NOT NULL,
    started_at ${integer} NOT NULL,
    configured_at ${integer} NOT NULL,
    config_digest ${text},
    -- What processes must have in common.
    limits_digest ${text},
    pepper_marks ${text},
    -- NULL: it has no keys yet.
    keys_epoch ${integer},
    admin_url ${text} NOT NULL,
    -- NULL: it can serve.
    not_ready ${text},
    degraded ${text},
    -- By the clock of the database.
    signed_at ${integer} NOT NULL
  ) ${plain};
`;
