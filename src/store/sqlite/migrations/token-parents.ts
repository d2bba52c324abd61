/** With which token a management token was made; tokens of before have none and stay as they are. */
export const tokenParents = `
  ALTER TABLE management_tokens ADD COLUMN parent_id TEXT;
  CREATE INDEX management_tokens_by_parent ON management_tokens (parent_id)
    WHERE parent_id IS NOT NULL;
`;
