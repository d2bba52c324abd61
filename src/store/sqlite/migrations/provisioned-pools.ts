/**
 * The pool of a key's provisioned units. Older units have none and guarantee nothing until one is
 * set.
 */
export const provisionedPools = `
  ALTER TABLE keys ADD COLUMN provisioned_pool TEXT;
  CREATE INDEX keys_by_pool ON keys (provisioned_pool, created_at, id)
    WHERE provisioned_pool IS NOT NULL;
`;
