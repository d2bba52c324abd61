/** The gateways on a database; a database in a file has one, which does not sign here. */
export const replicas = `
  CREATE TABLE replicas (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    version TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    configured_at INTEGER NOT NULL,
    config_digest TEXT,
    keys_epoch INTEGER,
    workers INTEGER NOT NULL,
    admin_url TEXT NOT NULL,
    not_ready TEXT,
    signed_at INTEGER NOT NULL
  ) STRICT;
`;

/** What gateways must have in common, and what one lacks. */
export const replicaDifferences = `
  ALTER TABLE replicas ADD COLUMN limits_digest TEXT;
  ALTER TABLE replicas ADD COLUMN pepper_marks TEXT;
  ALTER TABLE replicas ADD COLUMN degraded TEXT;
`;
