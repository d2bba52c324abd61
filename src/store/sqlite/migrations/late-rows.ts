/** The times by which late calls are detected. */
export const lateRows = `
  -- Calls of these accounts may still be on their way; they are not to be stored any more.
  CREATE TABLE erased_accounts (id TEXT PRIMARY KEY, at INTEGER NOT NULL) STRICT, WITHOUT ROWID;

  -- Calls that began before this time were removed: whether one is new cannot be told any more.
  INSERT INTO usage_horizons VALUES ('call', 0);
`;
