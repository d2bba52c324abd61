/** History that limits restore: of interrupted calls and of revoked keys. */
export const limitHistory = `
  -- What admission reserved; unknown of older calls.
  ALTER TABLE usage ADD COLUMN reserved_tokens INTEGER;
  -- Calls that used more than that.
  CREATE INDEX usage_overruns ON usage (started_at)
    WHERE input_tokens + output_tokens > reserved_tokens;

  -- Where the key's limits are counted: its own id, or what a key that was revoked leaves to it.
  ALTER TABLE keys ADD COLUMN limit_scope TEXT NOT NULL DEFAULT '';
  UPDATE keys SET limit_scope = id;
  CREATE INDEX keys_by_limit_scope ON keys (limit_scope) WHERE revoked_at IS NULL;

  -- The same of keys that were revoked and then removed, for as long as it may count.
  CREATE TABLE left_limit_scopes (
    key_id TEXT PRIMARY KEY,
    limit_scope TEXT NOT NULL,
    account_id TEXT NOT NULL,
    application_id TEXT NOT NULL,
    revoked_at INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX left_limit_scopes_by_end ON left_limit_scopes (account_id, revoked_at);

  -- What all keys of an account may use together; NULL: no limit.
  ALTER TABLE accounts ADD COLUMN requests_per_minute INTEGER;
  ALTER TABLE accounts ADD COLUMN tokens_per_minute INTEGER;
`;
