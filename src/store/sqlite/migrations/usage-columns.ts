/** How calls found their targets, and which of them a provider may bill twice. */
export const callRouting = `
  -- JSON of domain/kept-routing.ts; NULL for one target, one attempt, answered.
  ALTER TABLE usage ADD COLUMN routing TEXT;
  ALTER TABLE usage ADD COLUMN may_be_billed_twice INTEGER NOT NULL DEFAULT 0;
  -- They are rare: the list of them follows this.
  CREATE INDEX usage_billed_twice ON usage (started_at, id) WHERE may_be_billed_twice = 1;
`;

/**
 * Input that an upstream wrote to its cache, which costs more than other input; 0 in older rows.
 */
export const cacheWrites = `
  ALTER TABLE usage ADD COLUMN cache_write_tokens INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE usage_minutes ADD COLUMN cache_write_tokens INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE usage_hours ADD COLUMN cache_write_tokens INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE usage_days ADD COLUMN cache_write_tokens INTEGER NOT NULL DEFAULT 0;
`;
