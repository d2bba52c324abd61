/** Sums of the ledger by minute, hour and day, filled from the existing calls. */

const sumColumns = `
  calls INTEGER NOT NULL,
  failed_calls INTEGER NOT NULL,
  abandoned_calls INTEGER NOT NULL,
  input_tokens INTEGER NOT NULL,
  output_tokens INTEGER NOT NULL,
  cached_input_tokens INTEGER NOT NULL,
  estimated_tokens INTEGER NOT NULL,
  durations TEXT NOT NULL,
  first_events TEXT NOT NULL`;

const schema = `
  -- What calls are told apart by. Detail 0: all dimensions. Detail 1: environment, account,
  -- application and key. Detail 2: environment, account and model. Detail 3: environment, account,
  -- target, status and class. Dimensions that a detail leaves
  -- out, and the target of calls that tried none, are empty. Ids are never used again.
  CREATE TABLE usage_groups (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    detail INTEGER NOT NULL,
    environment TEXT NOT NULL,
    account_id TEXT NOT NULL,
    application_id TEXT NOT NULL,
    key_id TEXT NOT NULL,
    model TEXT NOT NULL,
    target TEXT NOT NULL,
    status INTEGER NOT NULL,
    capacity_class TEXT NOT NULL,
    -- Of groups of detail 0: those of detail 1, 2 and 3 that they are part of.
    key_group_id INTEGER,
    model_group_id INTEGER,
    route_group_id INTEGER,
    UNIQUE (account_id, detail, key_id, model, target, status, capacity_class, application_id,
      environment)
  ) STRICT;

  CREATE INDEX usage_groups_by_key ON usage_groups (key_id);
  CREATE INDEX usage_groups_by_application ON usage_groups (application_id);
  CREATE INDEX usage_groups_by_model ON usage_groups (model, status);
  CREATE INDEX usage_groups_by_status ON usage_groups (status);

  -- Latencies are texts of domain/latency-histogram.ts. Time comes before the group: what is written
  -- together lies together.
  CREATE TABLE usage_minutes (
    detail INTEGER NOT NULL, at INTEGER NOT NULL, group_id INTEGER NOT NULL, ${sumColumns},
    PRIMARY KEY (detail, at, group_id)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE usage_hours (
    detail INTEGER NOT NULL, at INTEGER NOT NULL, group_id INTEGER NOT NULL, ${sumColumns},
    PRIMARY KEY (detail, at, group_id)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE usage_days (
    detail INTEGER NOT NULL, at INTEGER NOT NULL, group_id INTEGER NOT NULL, ${sumColumns},
    PRIMARY KEY (detail, at, group_id)
  ) STRICT, WITHOUT ROWID;

  -- Up to when the sums of a step were removed, since their time was over.
  CREATE TABLE usage_horizons (step TEXT PRIMARY KEY, at INTEGER NOT NULL) STRICT;
  INSERT INTO usage_horizons VALUES ('minute', 0), ('hour', 0), ('day', 0);

  -- Which minutes are part of the hours and days of a detail: all before this place in their table.
  CREATE TABLE usage_folds (
    step TEXT NOT NULL, detail INTEGER NOT NULL, at INTEGER NOT NULL, group_id INTEGER NOT NULL,
    PRIMARY KEY (step, detail)
  ) STRICT;
  INSERT INTO usage_folds VALUES ('hour', 0, 0, 0), ('hour', 1, 0, 0), ('hour', 2, 0, 0),
    ('hour', 3, 0, 0), ('day', 0, 0, 0), ('day', 1, 0, 0), ('day', 2, 0, 0), ('day', 3, 0, 0);

  -- Lists by model, application and the rest go by time, over the days and hours with such calls.
  CREATE INDEX usage_by_key ON usage (key_id, started_at);
  CREATE INDEX usage_by_account ON usage (account_id, started_at);`;

interface Detail {
  readonly number: number;
  /** The dimensions of a call in the order of the columns of `usage_groups` after `detail`. */
  readonly dimensions: string;
  /** Joins calls with their group of this detail. */
  readonly join: string;
}

const full: Detail = {
  number: 0,
  dimensions: `environment, account_id, application_id, key_id, model, coalesce(target, ''), status,
    capacity_class`,
  join: `g.application_id = u.application_id AND g.key_id = u.key_id AND g.model = u.model
    AND g.target = coalesce(u.target, '') AND g.status = u.status
    AND g.capacity_class = u.capacity_class`,
};
const byKey: Detail = {
  number: 1,
  dimensions: "environment, account_id, application_id, key_id, '', '', 0, ''",
  join: "g.application_id = u.application_id AND g.key_id = u.key_id",
};
const byModel: Detail = {
  number: 2,
  dimensions: "environment, account_id, '', '', model, '', 0, ''",
  join: "g.model = u.model",
};

const byRoute: Detail = {
  number: 3,
  dimensions: "environment, account_id, '', '', '', coalesce(target, ''), status, capacity_class",
  join: `g.target = coalesce(u.target, '') AND g.status = u.status
    AND g.capacity_class = u.capacity_class`,
};

function fillGroups({ number, dimensions }: Detail): string {
  return `
    INSERT INTO usage_groups (detail, environment, account_id, application_id, key_id, model,
      target, status, capacity_class)
    SELECT DISTINCT ${number}, ${dimensions} FROM usage;`;
}

function fillSums(table: string, stepMs: number, detail: Detail): string {
  const calls = `
    SELECT u.*, u.started_at - u.started_at % ${stepMs} AS at, g.id AS group_id
    FROM usage u JOIN usage_groups g ON g.detail = ${detail.number}
      AND g.environment = u.environment AND g.account_id = u.account_id AND ${detail.join}`;
  return `
    WITH calls AS MATERIALIZED (${calls}),
    durations AS (${joinLatencies("duration_ms", "outcome = 'completed'")}),
    first_events AS (${joinLatencies("first_event_ms", "first_event_ms IS NOT NULL")}),
    sums AS (
      SELECT at, group_id, count(*) AS calls, sum(outcome <> 'completed') AS failed_calls,
        sum(outcome = 'abandoned') AS abandoned_calls, sum(input_tokens) AS input_tokens,
        sum(output_tokens) AS output_tokens, sum(cached_input_tokens) AS cached_input_tokens,
        sum(iif(usage_source = 'upstream', 0, input_tokens + output_tokens)) AS estimated_tokens
      FROM calls GROUP BY at, group_id
    )
    INSERT INTO ${table}
    SELECT ${detail.number}, sums.at, sums.group_id, sums.calls, failed_calls, abandoned_calls,
      input_tokens, output_tokens, cached_input_tokens, estimated_tokens,
      coalesce(durations.latencies, ''), coalesce(first_events.latencies, '')
    FROM sums LEFT JOIN durations USING (at, group_id) LEFT JOIN first_events USING (at, group_id);`;
}

/** The encoding of `domain/usage/latency-histogram.ts`. */
function joinLatencies(column: string, condition: string): string {
  return `
    SELECT at, group_id, group_concat(char(64 + bucket / 31, 96 + bucket % 31) || count, '')
      AS latencies
    FROM (
      SELECT at, group_id, count(*) AS count, CAST(iif(${column} <= 0.01, 0,
        min(991, ceil(ln(${column} / 0.01) / ln(1.08)))) AS INTEGER) AS bucket
      FROM calls WHERE ${condition} GROUP BY at, group_id, bucket
    ) GROUP BY at, group_id`;
}

function linkGroups(column: string, detail: number, dimensions: readonly string[]): string {
  const same = ["environment", "account_id", ...dimensions].map(
    (dimension) => `AND part.${dimension} = usage_groups.${dimension}`,
  );
  return `
    UPDATE usage_groups SET ${column} = part.id FROM usage_groups AS part
      WHERE usage_groups.detail = 0 AND part.detail = ${detail} ${same.join(" ")};`;
}

const markFolded = `
  UPDATE usage_folds SET at = coalesce((SELECT max(at) + 60000 FROM usage_minutes), 0);`;

export const usageRollups = [
  schema,
  ...[full, byKey, byModel, byRoute].map(fillGroups),
  linkGroups("key_group_id", byKey.number, ["application_id", "key_id"]),
  linkGroups("model_group_id", byModel.number, ["model"]),
  linkGroups("route_group_id", byRoute.number, ["target", "status", "capacity_class"]),
  fillSums("usage_minutes", 60_000, full),
  ...[full, byKey, byModel, byRoute].flatMap((detail) => [
    fillSums("usage_hours", 3_600_000, detail),
    fillSums("usage_days", 86_400_000, detail),
  ]),
  markFolded,
].join("\n");
