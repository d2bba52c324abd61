/** The ledger and its sums. */
export const tables = `
  CREATE TABLE usage (
    -- The order of storing.
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    started_at INTEGER NOT NULL,
    environment TEXT NOT NULL,
    account_id TEXT NOT NULL,
    application_id TEXT NOT NULL,
    application TEXT NOT NULL,
    key_id TEXT NOT NULL,
    model TEXT NOT NULL,
    -- chat, responses, messages or embeddings.
    dialect TEXT NOT NULL,
    target TEXT,
    capacity_class TEXT NOT NULL,
    -- What admission reserved; NULL: unknown.
    reserved_tokens INTEGER,
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    cached_input_tokens INTEGER NOT NULL,
    -- Input that an upstream wrote to its cache, which costs more than other input.
    cache_write_tokens INTEGER NOT NULL,
    -- The part of it that is kept for an hour.
    cache_write_1h_tokens INTEGER NOT NULL,
    -- That vectors were made of; NULL: none.
    images INTEGER,
    service_tier TEXT,
    -- Nano-USD; NULL: something that was used has no price.
    cost_nano INTEGER,
    price_version INTEGER,
    -- The cost by the last run that priced it again; NULL: it has its first.
    repriced_nano INTEGER,
    usage_source TEXT NOT NULL,
    outcome TEXT NOT NULL,
    status INT NOT NULL,
    code TEXT,
    is_streamed INT NOT NULL,
    attempts INTEGER NOT NULL,
    first_event_ms REAL,
    duration_ms REAL NOT NULL,
    -- JSON of domain/usage/call-routing.ts; NULL for one target, one attempt, answered.
    routing TEXT,
    may_be_billed_twice INT NOT NULL,
    -- 'playground'; NULL: an application made it.
    via TEXT,
    -- A pseudonym, or the name itself if the file says so; NULL: none was named, or it is erased. In no
    -- index: SQLite leaves copies of values in pages of an index that it splits.
    end_user TEXT,
    -- JSON: values by keys; NULL: none.
    tags TEXT
  ) STRICT;
  -- Lists by model, application and the rest go by time, over the days and hours with such calls.
  CREATE INDEX usage_by_time ON usage (started_at);
  CREATE INDEX usage_by_key ON usage (key_id, started_at);
  CREATE INDEX usage_by_account ON usage (account_id, started_at);
  -- They are rare: the list of them follows this.
  CREATE INDEX usage_billed_twice ON usage (started_at, id) WHERE may_be_billed_twice = 1;

  -- Changes of the costs of calls, each by a run that priced calls again.
  CREATE TABLE cost_adjustments (
    call_id TEXT NOT NULL,
    run TEXT NOT NULL,
    at INTEGER NOT NULL,
    account_id TEXT NOT NULL,
    -- Of the call.
    started_at INTEGER NOT NULL,
    -- NULL: it had no cost.
    old_nano INTEGER,
    new_nano INTEGER NOT NULL,
    price_version INTEGER NOT NULL,
    PRIMARY KEY (call_id, run)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX cost_adjustments_by_time ON cost_adjustments (started_at);
  CREATE INDEX cost_adjustments_by_account ON cost_adjustments (account_id);

  -- Runs that priced calls again. The event of a run goes to the receiver once.
  CREATE TABLE reprice_runs (
    run TEXT PRIMARY KEY,
    at INTEGER NOT NULL,
    -- JSON: what the run did, as its operation says it.
    summary TEXT NOT NULL,
    is_delivered INT NOT NULL
  ) STRICT;
  CREATE INDEX reprice_runs_waiting ON reprice_runs (at) WHERE is_delivered = 0;

  -- What calls are told apart by in sums. An absent target or code is empty.
  CREATE TABLE usage_groups (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    environment TEXT NOT NULL,
    account_id TEXT NOT NULL,
    application_id TEXT NOT NULL,
    key_id TEXT NOT NULL,
    model TEXT NOT NULL,
    dialect TEXT NOT NULL,
    target TEXT NOT NULL,
    capacity_class TEXT NOT NULL,
    outcome TEXT NOT NULL,
    status INT NOT NULL,
    code TEXT NOT NULL,
    UNIQUE (account_id, key_id, model, dialect, target, capacity_class, outcome, status, code,
      application_id, environment)
  ) STRICT;
  CREATE INDEX usage_groups_by_key ON usage_groups (key_id);
  CREATE INDEX usage_groups_by_application ON usage_groups (application_id);

  -- The calls of each group, once by the hour and once by the day, its grain. Time comes before the
  -- group: what is written together lies together.
  CREATE TABLE usage_sums (
    grain TEXT NOT NULL,
    at INTEGER NOT NULL,
    group_id INTEGER NOT NULL,
    calls INTEGER NOT NULL,
    failed_calls INTEGER NOT NULL,
    abandoned_calls INTEGER NOT NULL,
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    cached_input_tokens INTEGER NOT NULL,
    cache_write_tokens INTEGER NOT NULL,
    estimated_tokens INTEGER NOT NULL,
    -- Of the calls with a cost.
    cost_nano INTEGER NOT NULL,
    unpriced_calls INTEGER NOT NULL,
    -- Latencies are texts of domain/usage/latency-histogram.ts.
    durations TEXT NOT NULL,
    first_events TEXT NOT NULL,
    PRIMARY KEY (grain, at, group_id)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX usage_sums_by_group ON usage_sums (group_id, grain, at);

  -- Up to when calls and the sums of hours were removed, since their time was over.
  CREATE TABLE usage_horizons (step TEXT PRIMARY KEY, at INTEGER NOT NULL) STRICT;
  INSERT INTO usage_horizons VALUES ('call', 0), ('hour', 0);

  -- Up to where calls were delivered to the receiver of events, and which gateway delivers them.
  CREATE TABLE event_cursor (
    place INT PRIMARY KEY CHECK (place = 1),
    position INTEGER NOT NULL,
    holder TEXT NOT NULL,
    held_until INTEGER NOT NULL
  ) STRICT;

  -- Calls of these accounts may still be on their way; they are not to be stored any more.
  CREATE TABLE erased_accounts (id TEXT PRIMARY KEY, at INTEGER NOT NULL) STRICT, WITHOUT ROWID;

  -- End users whose earlier calls are stored without them. Only a digest, which names nobody.
  CREATE TABLE erased_end_users (digest TEXT PRIMARY KEY, at INTEGER NOT NULL) STRICT, WITHOUT ROWID;
`;
