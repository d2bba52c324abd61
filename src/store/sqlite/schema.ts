import { tables } from "../repositories/schema.ts";

const triggers = `
  CREATE TRIGGER audit_is_never_changed BEFORE UPDATE ON audit
    BEGIN SELECT raise(ABORT, 'the audit is append-only'); END;
  -- Retention removes entries at the beginning. The next one continues from the last.
  CREATE TRIGGER audit_is_never_cut BEFORE DELETE ON audit
    WHEN old.sequence = (SELECT max(sequence) FROM audit)
    BEGIN SELECT raise(ABORT, 'the audit is append-only'); END;
`;

/** `PRAGMA user_version` has the version. */
export const schema: string = [tables, triggers].join("\n");
