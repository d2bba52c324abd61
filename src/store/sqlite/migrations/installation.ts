/** The owner of the database and the pepper of its keys. At most one row. */
export const installation = `
  CREATE TABLE installation (
    place INTEGER PRIMARY KEY CHECK (place = 1),
    id TEXT NOT NULL,
    pepper_mark TEXT
  ) STRICT;
`;
