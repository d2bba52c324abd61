/** Keys, secrets and the ledger. */
export const firstSchema = `
  CREATE TABLE keys (
    id TEXT PRIMARY KEY,
    application TEXT NOT NULL,
    environment TEXT NOT NULL,
    plan TEXT NOT NULL,
    requests_per_minute INTEGER,
    tokens_per_minute INTEGER,
    created_at INTEGER NOT NULL,
    revoked_at INTEGER
  ) STRICT;

  CREATE TABLE secrets (
    public_id TEXT PRIMARY KEY,
    key_id TEXT NOT NULL REFERENCES keys (id),
    digest BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER
  ) STRICT;
  CREATE INDEX secrets_by_key ON secrets (key_id);

  CREATE TABLE usage (
    id TEXT PRIMARY KEY,
    started_at INTEGER NOT NULL,
    environment TEXT NOT NULL,
    application TEXT NOT NULL,
    key_id TEXT NOT NULL,
    model TEXT NOT NULL,
    target TEXT,
    capacity_class TEXT NOT NULL,
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    cached_input_tokens INTEGER NOT NULL,
    usage_source TEXT NOT NULL,
    outcome TEXT NOT NULL,
    status INTEGER NOT NULL,
    code TEXT,
    is_streamed INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    first_event_ms REAL,
    duration_ms REAL NOT NULL
  ) STRICT;
  CREATE INDEX usage_by_time ON usage (started_at);
  `;
