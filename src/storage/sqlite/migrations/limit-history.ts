/** What limits must know of the time before: of calls that were interrupted, and of keys that ended. */
export const limitHistory = `
  -- What admission reserved; unknown of older calls.
  ALTER TABLE usage ADD COLUMN reserved_tokens INTEGER;

  -- Where the key's limits are counted: its own id, or what a key that was revoked leaves to it.
  ALTER TABLE keys ADD COLUMN limit_scope TEXT NOT NULL DEFAULT '';
  UPDATE keys SET limit_scope = id;
  CREATE INDEX keys_by_limit_scope ON keys (limit_scope) WHERE revoked_at IS NULL;

  -- What all keys of an account may use together; NULL: no limit.
  ALTER TABLE accounts ADD COLUMN requests_per_minute INTEGER;
  ALTER TABLE accounts ADD COLUMN tokens_per_minute INTEGER;
`;
