import { text } from "./columns.ts";

/** Stored answers. */
export const replySchema = `
  CREATE TABLE replies (
    id ${text} PRIMARY KEY,
    request_digest ${text} NOT NULL,
    status smallint NOT NULL,
    body bytea,
    created_at bigint NOT NULL,
    shown_until bigint NOT NULL
  );
  CREATE INDEX replies_by_age ON replies (created_at);

  CREATE TABLE call_replies (
    id ${text} NOT NULL PRIMARY KEY,
    account_id ${text} NOT NULL,
    request_digest ${text} NOT NULL,
    kept_at bigint NOT NULL,
    -- What it counts of the limit.
    bytes bigint NOT NULL,
    -- NULL: too large to be kept.
    body bytea
  );
  CREATE INDEX call_replies_by_age ON call_replies (kept_at);
  CREATE INDEX call_replies_by_account ON call_replies (account_id, kept_at);

  CREATE TABLE call_replies_sum (
    bytes bigint NOT NULL
  );

  CREATE TABLE call_reply_shares (
    account_id ${text} NOT NULL PRIMARY KEY,
    bytes bigint NOT NULL
  );
  CREATE INDEX call_reply_shares_by_size ON call_reply_shares (bytes);
  INSERT INTO call_replies_sum VALUES (0);

  -- Both sums are kept by triggers, because scanning large rows is slow.
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
