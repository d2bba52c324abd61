import { tables } from "../repositories/schema.ts";

const triggers = `
  CREATE TRIGGER audit_is_never_changed BEFORE UPDATE ON audit
    BEGIN SELECT raise(ABORT, 'the audit is append-only'); END;
  -- Retention removes entries at the beginning. The next one continues from the last.
  CREATE TRIGGER audit_is_never_cut BEFORE DELETE ON audit
    WHEN old.sequence = (SELECT max(sequence) FROM audit)
    BEGIN SELECT raise(ABORT, 'the audit is append-only'); END;

  CREATE TRIGGER call_replies_added AFTER INSERT ON call_replies BEGIN
    UPDATE call_replies_sum SET bytes = bytes + NEW.bytes;
    INSERT INTO call_reply_shares VALUES (NEW.account_id, NEW.bytes)
      ON CONFLICT (account_id) DO UPDATE SET bytes = bytes + excluded.bytes;
  END;
  CREATE TRIGGER call_replies_removed AFTER DELETE ON call_replies BEGIN
    UPDATE call_replies_sum SET bytes = bytes - OLD.bytes;
    UPDATE call_reply_shares SET bytes = bytes - OLD.bytes WHERE account_id = OLD.account_id;
    DELETE FROM call_reply_shares WHERE account_id = OLD.account_id AND bytes <= 0;
  END;
`;

/** `PRAGMA user_version` has the version. */
export const schema: string = [tables, triggers].join("\n");
