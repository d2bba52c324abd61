import { text } from "./columns.ts";

/** The gateways on this database. */
export const replicas = `
  CREATE TABLE replicas (
    id ${text} PRIMARY KEY,
    name ${text} NOT NULL,
    version ${text} NOT NULL,
    started_at bigint NOT NULL,
    configured_at bigint NOT NULL,
    config_digest ${text},
    -- NULL: not all of its workers have keys.
    keys_epoch bigint,
    workers bigint NOT NULL,
    admin_url ${text} NOT NULL,
    -- NULL: it can serve.
    not_ready ${text},
    -- By the clock of the server.
    signed_at bigint NOT NULL
  );
`;

/** What gateways must have in common, NULL of a version that does not tell, and what one lacks. */
export const replicaDifferences = `
  ALTER TABLE replicas ADD COLUMN limits_digest ${text};
  ALTER TABLE replicas ADD COLUMN pepper_marks ${text};
  ALTER TABLE replicas ADD COLUMN degraded ${text};
`;
