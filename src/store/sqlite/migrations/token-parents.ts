/** The token that a management token was made with; older tokens have none. */
export const tokenParents = `
  ALTER TABLE management_tokens ADD COLUMN parent_id TEXT;
  CREATE INDEX management_tokens_by_parent ON management_tokens (parent_id)
    WHERE parent_id IS NOT NULL;
`;
