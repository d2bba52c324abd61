import { text } from "./columns.ts";

/** Latencies are texts of domain/usage/latency-histogram.ts. */
const sumTable = (name: string): string => `
  CREATE TABLE ${name} (
    detail smallint NOT NULL,
    at bigint NOT NULL,
    group_id bigint NOT NULL,
    calls bigint NOT NULL,
    failed_calls bigint NOT NULL,
    abandoned_calls bigint NOT NULL,
    input_tokens bigint NOT NULL,
    output_tokens bigint NOT NULL,
    cached_input_tokens bigint NOT NULL,
    estimated_tokens bigint NOT NULL,
    durations ${text} NOT NULL,
    first_events ${text} NOT NULL,
    cache_write_tokens bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (detail, at, group_id)
  );`;

/** The ledger, in partitions of a day (`usage-partitions.ts`), and its sums. */
export const usageSchema = `
  CREATE TABLE usage (
    id ${text} NOT NULL,
    started_at bigint NOT NULL,
    environment ${text} NOT NULL,
    application ${text} NOT NULL,
    key_id ${text} NOT NULL,
    model ${text} NOT NULL,
    target ${text},
    capacity_class ${text} NOT NULL,
    input_tokens bigint NOT NULL,
    output_tokens bigint NOT NULL,
    cached_input_tokens bigint NOT NULL,
    usage_source ${text} NOT NULL,
    outcome ${text} NOT NULL,
    status smallint NOT NULL,
    code ${text},
    is_streamed smallint NOT NULL,
    attempts smallint NOT NULL,
    first_event_ms double precision,
    duration_ms double precision NOT NULL,
    account_id ${text} NOT NULL DEFAULT '',
    application_id ${text} NOT NULL DEFAULT '',
    routing ${text},
    may_be_billed_twice smallint NOT NULL DEFAULT 0,
    reserved_tokens bigint,
    cache_write_tokens bigint NOT NULL DEFAULT 0,
    -- A call always begins at the same time, so this is as strict as the id alone.
    PRIMARY KEY (id, started_at)
  ) PARTITION BY RANGE (started_at);
  CREATE INDEX usage_by_time ON usage (started_at);
  CREATE INDEX usage_by_key ON usage (key_id, started_at);
  CREATE INDEX usage_by_account ON usage (account_id, started_at);
  CREATE INDEX usage_billed_twice ON usage (started_at, id) WHERE may_be_billed_twice = 1;
  CREATE INDEX usage_overruns ON usage (started_at)
    WHERE input_tokens + output_tokens > reserved_tokens;

  CREATE TABLE usage_groups (
    id bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    detail smallint NOT NULL,
    environment ${text} NOT NULL,
    account_id ${text} NOT NULL,
    application_id ${text} NOT NULL,
    key_id ${text} NOT NULL,
    model ${text} NOT NULL,
    target ${text} NOT NULL,
    status smallint NOT NULL,
    capacity_class ${text} NOT NULL,
    -- Of groups of detail 0: those of detail 1, 2 and 3 that they are part of.
    key_group_id bigint,
    model_group_id bigint,
    route_group_id bigint,
    UNIQUE (account_id, detail, key_id, model, target, status, capacity_class, application_id,
      environment)
  );
  CREATE INDEX usage_groups_by_key ON usage_groups (key_id);
  CREATE INDEX usage_groups_by_application ON usage_groups (application_id);
  CREATE INDEX usage_groups_by_model ON usage_groups (model, status);
  CREATE INDEX usage_groups_by_status ON usage_groups (status);

${["usage_minutes", "usage_hours", "usage_days"].map(sumTable).join("")}
  CREATE TABLE usage_folds (
    step ${text} NOT NULL,
    detail smallint NOT NULL,
    at bigint NOT NULL,
    group_id bigint NOT NULL,
    PRIMARY KEY (step, detail)
  );

  CREATE TABLE usage_horizons (
    step ${text} PRIMARY KEY,
    at bigint NOT NULL
  );
  INSERT INTO usage_horizons VALUES ('minute', 0), ('hour', 0), ('day', 0), ('call', 0);
  INSERT INTO usage_folds SELECT step, detail, 0, 0
    FROM unnest(ARRAY['hour', 'day']) AS step, generate_series(0, 3) AS detail;
`;
