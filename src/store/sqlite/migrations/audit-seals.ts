/**
 * Seals of the audit, made with keys derived from the pepper. Older entries have none; the head is
 * sealed in the transaction of this step.
 */
export const auditSeals = `
  ALTER TABLE audit ADD COLUMN pepper TEXT;
  ALTER TABLE audit ADD COLUMN seal TEXT;

  -- Of the last entry that was removed: its time, when it was removed, and how long entries were kept.
  ALTER TABLE audit_anchor ADD COLUMN at INTEGER;
  ALTER TABLE audit_anchor ADD COLUMN removed_at INTEGER;
  ALTER TABLE audit_anchor ADD COLUMN kept_ms INTEGER;
  ALTER TABLE audit_anchor ADD COLUMN pepper TEXT;
  ALTER TABLE audit_anchor ADD COLUMN seal TEXT;

  -- Where the chain ends, and up to which entry none has a seal.
  CREATE TABLE audit_head (
    place INTEGER PRIMARY KEY CHECK (place = 1),
    sequence INTEGER NOT NULL,
    digest TEXT NOT NULL,
    plain_until INTEGER NOT NULL,
    pepper TEXT NOT NULL,
    seal TEXT NOT NULL
  ) STRICT;
`;
