/** Encrypted, replayable answers to calls; the body is last, so that other columns skip it. */
export const callReplies = `
  CREATE TABLE call_replies (
    id TEXT NOT NULL PRIMARY KEY,
    account_id TEXT NOT NULL,
    request_digest TEXT NOT NULL,
    kept_at INTEGER NOT NULL,
    -- What it counts of the limit.
    bytes INTEGER NOT NULL,
    -- NULL: too large to be kept.
    body BLOB
  ) STRICT;
  CREATE INDEX call_replies_by_age ON call_replies (kept_at);
  CREATE INDEX call_replies_by_account ON call_replies (account_id);

  -- The sum of all sizes, kept by triggers, because scanning large rows is slow.
  CREATE TABLE call_replies_sum (bytes INTEGER NOT NULL) STRICT;
  INSERT INTO call_replies_sum VALUES (0);
  CREATE TRIGGER call_replies_added AFTER INSERT ON call_replies BEGIN
    UPDATE call_replies_sum SET bytes = bytes + NEW.bytes;
  END;
  CREATE TRIGGER call_replies_removed AFTER DELETE ON call_replies BEGIN
    UPDATE call_replies_sum SET bytes = bytes - OLD.bytes;
  END;
`;

/** The size of each account's stored answers; the account that has most is evicted from. */
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
