/** Whose the database is, and under which pepper its keys are digested. At most one row. */
export const installation = `
  CREATE TABLE installation (
    place INTEGER PRIMARY KEY CHECK (place = 1),
    id TEXT NOT NULL,
    pepper_mark TEXT
  ) STRICT;
`;
