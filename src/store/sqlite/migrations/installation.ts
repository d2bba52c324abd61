/** The owner of the database and the pepper of its keys. At most one row. */
export const installation = `
  CREATE TABLE installation (
    place INTEGER PRIMARY KEY CHECK (place = 1),
    id TEXT NOT NULL,
    pepper_mark TEXT
  ) STRICT;
`;

/** The pepper of each digest. */
export const pepperMarks = `
  ALTER TABLE secrets ADD COLUMN pepper TEXT;
  UPDATE secrets SET pepper = (SELECT pepper_mark FROM installation);
  ALTER TABLE management_tokens ADD COLUMN pepper TEXT;
  UPDATE management_tokens SET pepper = (SELECT pepper_mark FROM installation);

  -- Since when the noted pepper makes what is new; NULL: always.
  ALTER TABLE installation ADD COLUMN pepper_since INTEGER;
`;
