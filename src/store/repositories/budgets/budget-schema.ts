/** Budgets, and what is spent under them. */
export const tables = `
  CREATE TABLE budgets (
    id TEXT PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    -- NULL: of the whole account, or of all of its models.
    application_id TEXT REFERENCES applications (id) ON DELETE CASCADE,
    key_id TEXT REFERENCES keys (id) ON DELETE CASCADE,
    model TEXT,
    each_end_user INT NOT NULL,
    period TEXT NOT NULL,
    time_zone TEXT NOT NULL,
    mode TEXT NOT NULL,
    limit_nano INTEGER NOT NULL,
    -- JSON: percentages of the limit.
    alerts TEXT NOT NULL,
    note TEXT NOT NULL,
    set_by TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    revision INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX budgets_by_age ON budgets (created_at, id);
  CREATE INDEX budgets_by_account ON budgets (account_id, created_at, id);
  CREATE INDEX budgets_by_application ON budgets (application_id, created_at, id)
    WHERE application_id IS NOT NULL;
  CREATE INDEX budgets_by_key ON budgets (key_id, created_at, id) WHERE key_id IS NOT NULL;
  -- An account may have a budget for each of many keys: those that a call is under are few of them.
  CREATE INDEX budgets_by_owner ON budgets (account_id, key_id, application_id);

  -- The sums of the stored calls of each period. They outlive their budget for a moment: a row that is
  -- stored while its budget is deleted must not fail.
  CREATE TABLE budget_spend (
    budget_id TEXT NOT NULL,
    period_id TEXT NOT NULL,
    -- A digest, as in domain/money/budget.ts; empty: the budget is not for each end user.
    end_user TEXT NOT NULL,
    -- The process that counted the calls, as in domain/money/budget.ts.
    process TEXT NOT NULL,
    -- NULL: never.
    ends_at INTEGER,
    spent_nano INTEGER NOT NULL,
    unpriced_calls INTEGER NOT NULL,
    -- Of the budgets, when the row was changed.
    changed_epoch INTEGER NOT NULL,
    PRIMARY KEY (budget_id, period_id, end_user, process)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX budget_spend_by_end ON budget_spend (ends_at) WHERE ends_at IS NOT NULL;
  CREATE INDEX budget_spend_by_epoch ON budget_spend (changed_epoch);

  -- Percentages of a limit that were reached, each once in a period.
  CREATE TABLE budget_alerts (
    budget_id TEXT NOT NULL,
    period_id TEXT NOT NULL,
    threshold INTEGER NOT NULL,
    -- The last call that was stored with those that reached it: events of calls and alerts have one order.
    call_sequence INTEGER NOT NULL,
    at INTEGER NOT NULL,
    mode TEXT NOT NULL,
    limit_nano INTEGER NOT NULL,
    spent_nano INTEGER NOT NULL,
    -- Whether a higher limit has made it possible again.
    is_rearmed INT NOT NULL,
    PRIMARY KEY (budget_id, period_id, threshold, call_sequence)
  ) STRICT, WITHOUT ROWID;
  CREATE UNIQUE INDEX budget_alerts_once ON budget_alerts (budget_id, period_id, threshold)
    WHERE is_rearmed = 0;
  CREATE INDEX budget_alerts_by_age ON budget_alerts (at);
  CREATE INDEX budget_alerts_by_call ON budget_alerts (call_sequence);

  -- Whatever changes budgets or their spend takes the next epoch first, so one waits for the other.
  INSERT INTO epochs VALUES ('budgets', 0);
`;
