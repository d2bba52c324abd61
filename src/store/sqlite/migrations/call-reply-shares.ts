/** The size of each account's stored answers. The account with most loses its oldest first. */
export const callReplyShares = `
  CREATE TABLE call_reply_shares (
    account_id TEXT NOT NULL PRIMARY KEY,
    bytes INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX call_reply_shares_by_size ON call_reply_shares (bytes);
  INSERT INTO call_reply_shares SELECT account_id, sum(bytes) FROM call_replies GROUP BY account_id;
  CREATE TRIGGER call_reply_share_added AFTER INSERT ON call_replies BEGIN
    INSERT INTO call_reply_shares VALUES (NEW.account_id, NEW.bytes)
      ON CONFLICT (account_id) DO UPDATE SET bytes = bytes + excluded.bytes;
  END;
  CREATE TRIGGER call_reply_share_removed AFTER DELETE ON call_replies BEGIN
    UPDATE call_reply_shares SET bytes = bytes - OLD.bytes WHERE account_id = OLD.account_id;
    DELETE FROM call_reply_shares WHERE account_id = OLD.account_id AND bytes <= 0;
  END;

  -- The oldest of an account are found without sorting.
  DROP INDEX call_replies_by_account;
  CREATE INDEX call_replies_by_account ON call_replies (account_id, kept_at);
`;
