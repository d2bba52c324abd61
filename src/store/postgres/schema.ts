import { tables } from "../repositories/schema.ts";

/**
 * Texts are sorted by bytes, as in SQLite: a collation of the operating system would be slower, and
 * its upgrades break indexes.
 */
const words: Readonly<Record<string, string>> = {
  TEXT: 'text COLLATE "C"',
  INTEGER: "bigint",
  INT: "smallint",
  REAL: "double precision",
  BLOB: "bytea",
  AUTOINCREMENT: "GENERATED ALWAYS AS IDENTITY",
  STRICT: "",
  ", WITHOUT ROWID": "",
};

const translated = tables.replace(
  /, WITHOUT ROWID|\b(?:TEXT|INTEGER|INT|REAL|BLOB|AUTOINCREMENT|STRICT)\b/g,
  (word) => words[word] ?? word,
);

/** See the schema of SQLite. */
const triggers = `
  CREATE FUNCTION refuse_audit_change() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN RAISE EXCEPTION 'the audit is append-only'; END $$;
  CREATE TRIGGER audit_is_never_changed BEFORE UPDATE OR TRUNCATE ON audit
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_audit_change();
  CREATE FUNCTION refuse_audit_cut() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF old.sequence < (SELECT max(sequence) FROM audit) THEN RETURN old; END IF;
      RAISE EXCEPTION 'the audit is append-only';
    END $$;
  CREATE TRIGGER audit_is_never_cut BEFORE DELETE ON audit
    FOR EACH ROW EXECUTE FUNCTION refuse_audit_cut();

  CREATE FUNCTION count_call_reply() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      UPDATE call_replies_sum SET bytes = bytes + new.bytes;
      INSERT INTO call_reply_shares AS share VALUES (new.account_id, new.bytes)
        ON CONFLICT (account_id) DO UPDATE SET bytes = share.bytes + excluded.bytes;
      RETURN NULL;
    END $$;
  CREATE TRIGGER call_replies_added AFTER INSERT ON call_replies
    FOR EACH ROW EXECUTE FUNCTION count_call_reply();
  CREATE FUNCTION discount_call_reply() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      UPDATE call_replies_sum SET bytes = bytes - old.bytes;
      UPDATE call_reply_shares SET bytes = bytes - old.bytes WHERE account_id = old.account_id;
      DELETE FROM call_reply_shares WHERE account_id = old.account_id AND bytes <= 0;
      RETURN NULL;
    END $$;
  CREATE TRIGGER call_replies_removed AFTER DELETE ON call_replies
    FOR EACH ROW EXECUTE FUNCTION discount_call_reply();
`;

const version = `
  CREATE TABLE schema_version (
    place smallint PRIMARY KEY CHECK (place = 1),
    version bigint NOT NULL
  );
`;

/** `schema_version` has the version. */
export const schema: string = [translated, triggers, version].join("\n");
