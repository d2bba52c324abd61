/**
 * Which pool the provisioned units of a key are of. Units of before are of none and guarantee
 * nothing until somebody names one.
 */
export const provisionedPools = `
  ALTER TABLE keys ADD COLUMN provisioned_pool TEXT;
  CREATE INDEX keys_by_pool ON keys (provisioned_pool, created_at, id)
    WHERE provisioned_pool IS NOT NULL;
`;
