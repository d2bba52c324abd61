/** What people call a key. */
export const keyNames = `
  ALTER TABLE keys ADD COLUMN name TEXT NOT NULL DEFAULT '';
`;
