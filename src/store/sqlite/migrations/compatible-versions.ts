/**
 * The oldest schema whose programs can use the database, as of a version. `PRAGMA user_version` has
 * the version, too, for programs from before this table. One row.
 */
export const compatibleVersions = `
  CREATE TABLE schema_version (
    place INTEGER PRIMARY KEY CHECK (place = 1),
    version INTEGER NOT NULL,
    compatible_since INTEGER NOT NULL
  ) STRICT;
  INSERT INTO schema_version VALUES (1, 0, 0);
`;
