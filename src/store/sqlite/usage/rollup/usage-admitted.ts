import type { Database } from "bun:sqlite";
import { limitHistoryMs } from "../../../../domain/limits/slots.ts";
import type { AdmittedUsage } from "../../../usage-reports.ts";

interface AdmittedRow {
  readonly scope: string;
  readonly account_id: string;
  readonly second: number;
  readonly requests: number;
  readonly tokens: number;
}

/**
 * What keys were admitted for since a time, by the second; within their guarantees, since as long
 * before that as a guarantee may count. Calls that no target was tried for were refused, unless the
 * process ended under them: nobody knows what those used, so at least what was reserved counts. What
 * a call used beyond its reservation counts when it ended, even if it began up to an hour earlier.
 */
export function readAdmitted(database: Database, since: number): readonly AdmittedUsage[] {
  const guaranteedSince = since - limitHistoryMs;
  const excess = database.query<AdmittedRow, [number, number]>(beyondReservations);
  return [
    ...toUsage(database.query<AdmittedRow, [number]>(ofPlans).all(since), false),
    ...toUsage(excess.all(since - limitHistoryMs, since), false),
    ...toUsage(database.query<AdmittedRow, [number]>(ofGuarantees).all(guaranteedSince), true),
  ];
}

const isAdmitted = "(attempts > 0 OR outcome = 'interrupted')";
const used = "input_tokens + output_tokens";
const usedOrReserved = `max(${used},
  CASE outcome WHEN 'interrupted' THEN coalesce(reserved_tokens, 0) ELSE 0 END)`;
const withinReservation = `CASE outcome
  WHEN 'interrupted' THEN ${usedOrReserved} ELSE min(${used}, coalesce(reserved_tokens, ${used})) END`;

interface Sums {
  readonly second: string;
  readonly requests: string;
  readonly tokens: string;
  /** What of `usage`. */
  readonly where: string;
}

function sumsOf({ second, requests, tokens, where }: Sums): string {
  return `
    SELECT coalesce(keys.limit_scope, left_limit_scopes.limit_scope, admitted.key_id) AS scope,
      admitted.account_id, second, requests, tokens
    FROM (
      SELECT key_id, account_id, ${second} AS second, ${requests} AS requests,
        sum(${tokens}) AS tokens
      FROM usage WHERE ${where} AND ${isAdmitted} GROUP BY key_id, account_id, second
    ) AS admitted
    LEFT JOIN keys ON keys.id = admitted.key_id
    LEFT JOIN left_limit_scopes ON left_limit_scopes.key_id = admitted.key_id`;
}

const begun = { second: "started_at / 1000", requests: "count(*)" };

const ofPlans = sumsOf({
  ...begun,
  tokens: withinReservation,
  where: "started_at >= ? AND capacity_class <> 'provisioned'",
});

const beyondReservations = sumsOf({
  second: "CAST(started_at + duration_ms AS INTEGER) / 1000",
  requests: "0",
  tokens: `${used} - reserved_tokens`,
  where: `started_at >= ? AND ${used} > reserved_tokens AND started_at + duration_ms >= ?
    AND capacity_class <> 'provisioned' AND outcome <> 'interrupted'`,
});

// By the few keys that ever had a guarantee: an hour of everybody's calls is too much to read.
const ofGuarantees = sumsOf({
  ...begun,
  tokens: usedOrReserved,
  where: `
    key_id IN (SELECT key_id FROM usage_groups WHERE capacity_class = 'provisioned' AND detail = 0)
    AND started_at >= ? AND capacity_class = 'provisioned'`,
});

function toUsage(rows: readonly AdmittedRow[], isGuarantee: boolean): readonly AdmittedUsage[] {
  return rows.map(({ scope, account_id: accountId, second, requests, tokens }) => {
    return { limitScope: scope, accountId, isGuarantee, at: second * 1_000, requests, tokens };
  });
}
