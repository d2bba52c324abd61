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
