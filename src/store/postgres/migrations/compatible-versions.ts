/**
 * The oldest schema whose programs can use the database; each later migration updates it. And a call
 * may have more attempts than a smallint holds.
 */
export const compatibleVersions = `
  ALTER TABLE schema_version ADD COLUMN compatible_since bigint NOT NULL DEFAULT 0;
  ALTER TABLE usage ALTER COLUMN attempts TYPE integer;
`;
