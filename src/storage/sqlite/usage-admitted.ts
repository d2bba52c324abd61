import type { Database } from "bun:sqlite";
import type { AdmittedUsage } from "../usage-reports.ts";

interface AdmittedRow {
  readonly key_id: string;
  readonly second: number;
  readonly requests: number;
  readonly tokens: number;
}

/**
 * What keys were admitted for since a time, by the second. Calls that no target was tried for were
 * refused, unless the process ended under them.
 */
export function readAdmitted(database: Database, since: number): readonly AdmittedUsage[] {
  const rows = database
    .query<AdmittedRow, [number]>(
      `SELECT key_id, started_at / 1000 AS second, count(*) AS requests,
         sum(input_tokens + output_tokens) AS tokens
       FROM usage WHERE started_at >= ? AND (attempts > 0 OR outcome = 'interrupted')
       GROUP BY key_id, second`,
    )
    .all(since);
  return rows.map(({ key_id: keyId, second, requests, tokens }) => ({
    keyId,
    at: second * 1_000,
    requests,
    tokens,
  }));
}
