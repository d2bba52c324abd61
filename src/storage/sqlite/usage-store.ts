import type { Database, Statement } from "bun:sqlite";
import type { CallOutcome, CapacityClass, UsageRecord, UsageSource } from "../../domain/usage.ts";
import type { UsageStore, UsageSummary } from "../store.ts";

const columns = [
  "id",
  "started_at",
  "environment",
  "application",
  "key_id",
  "model",
  "target",
  "capacity_class",
  "input_tokens",
  "output_tokens",
  "cached_input_tokens",
  "usage_source",
  "outcome",
  "status",
  "code",
  "is_streamed",
  "attempts",
  "first_event_ms",
  "duration_ms",
] as const;

type ColumnValue = string | number | null;

interface UsageRow {
  readonly id: string;
  readonly started_at: number;
  readonly environment: string;
  readonly application: string;
  readonly key_id: string;
  readonly model: string;
  readonly target: string | null;
  readonly capacity_class: CapacityClass;
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly cached_input_tokens: number;
  readonly usage_source: UsageSource;
  readonly outcome: CallOutcome;
  readonly status: number;
  readonly code: string | null;
  readonly is_streamed: number;
  readonly attempts: number;
  readonly first_event_ms: number | null;
  readonly duration_ms: number;
}

/** The ledger in SQLite. */
export class SqliteUsageStore implements UsageStore {
  readonly #database: Database;
  readonly #insert: Statement<unknown, ColumnValue[]>;

  constructor(database: Database) {
    this.#database = database;
    this.#insert = database.prepare(
      `INSERT INTO usage (${columns.join(", ")}) VALUES (${columns.map(() => "?").join(", ")})
       ON CONFLICT (id) DO NOTHING`,
    );
  }

  insert(records: readonly UsageRecord[]): Promise<void> {
    const insertAll = this.#database.transaction(() => {
      for (const record of records) this.#insert.run(...toValues(record));
    });
    return new Promise((resolve) => resolve(insertAll.immediate()));
  }

  summarize(since: number): Promise<readonly UsageSummary[]> {
    const query = this.#database.query<UsageSummary, [number]>(
      `SELECT environment, application, key_id AS keyId, model, count(*) AS calls,
         sum(outcome <> 'completed') AS failedCalls, sum(input_tokens) AS inputTokens,
         sum(output_tokens) AS outputTokens, sum(cached_input_tokens) AS cachedInputTokens
       FROM usage WHERE started_at >= ?
       GROUP BY environment, application, key_id, model
       ORDER BY environment, application, key_id, model`,
    );
    return new Promise((resolve) => resolve(query.all(since)));
  }

  listRecent(limit: number): Promise<readonly UsageRecord[]> {
    const query = this.#database.query<UsageRow, [number]>(
      "SELECT * FROM usage ORDER BY started_at DESC, rowid DESC LIMIT ?",
    );
    return new Promise((resolve) => resolve(query.all(limit).map(toRecord)));
  }
}

function toValues(record: UsageRecord): ColumnValue[] {
  return [
    record.id,
    record.startedAt,
    record.environment,
    record.application,
    record.keyId,
    record.model,
    record.target ?? null,
    record.capacityClass,
    record.inputTokens,
    record.outputTokens,
    record.cachedInputTokens,
    record.usageSource,
    record.outcome,
    record.status,
    record.code ?? null,
    record.isStreamed ? 1 : 0,
    record.attempts,
    record.firstEventMs ?? null,
    record.durationMs,
  ];
}

function toRecord(row: UsageRow): UsageRecord {
  return {
    id: row.id,
    startedAt: row.started_at,
    environment: row.environment,
    application: row.application,
    keyId: row.key_id,
    model: row.model,
    target: row.target ?? undefined,
    capacityClass: row.capacity_class,
    inputTokens: row.input_tokens,
    outputTokens: row.output_tokens,
    cachedInputTokens: row.cached_input_tokens,
    usageSource: row.usage_source,
    outcome: row.outcome,
    status: row.status,
    code: row.code ?? undefined,
    isStreamed: row.is_streamed === 1,
    attempts: row.attempts,
    firstEventMs: row.first_event_ms ?? undefined,
    durationMs: row.duration_ms,
  };
}
