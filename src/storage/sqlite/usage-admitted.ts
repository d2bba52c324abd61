import type { Database } from "bun:sqlite";
import { longestGuaranteeSeconds } from "../../limits/slots.ts";
import type { AdmittedUsage } from "../usage-reports.ts";

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
 * process ended under them: nobody knows what those used, so at least what was reserved counts.
 */
export function readAdmitted(database: Database, since: number): readonly AdmittedUsage[] {
  const guaranteedSince = since - longestGuaranteeSeconds * 1_000;
  return [
    ...toUsage(database.query<AdmittedRow, [number]>(ofPlans).all(since), false),
    ...toUsage(database.query<AdmittedRow, [number]>(ofGuarantees).all(guaranteedSince), true),
  ];
}

const isAdmitted = "(attempts > 0 OR outcome = 'interrupted')";

function sumsWhere(condition: string): string {
  return `
    SELECT coalesce(keys.limit_scope, key_id) AS scope, admitted.account_id, second, requests, tokens
    FROM (
      SELECT key_id, account_id, started_at / 1000 AS second, count(*) AS requests,
        sum(max(input_tokens + output_tokens,
          CASE outcome WHEN 'interrupted' THEN coalesce(reserved_tokens, 0) ELSE 0 END)) AS tokens
      FROM usage WHERE ${condition} AND ${isAdmitted} GROUP BY key_id, account_id, second
    ) AS admitted LEFT JOIN keys ON keys.id = key_id`;
}

const ofPlans = sumsWhere("started_at >= ? AND capacity_class <> 'provisioned'");

// By the few keys that ever had a guarantee: an hour of everybody's calls is too much to read.
const ofGuarantees = sumsWhere(`
  key_id IN (SELECT key_id FROM usage_groups WHERE capacity_class = 'provisioned' AND detail = 0)
  AND started_at >= ? AND capacity_class = 'provisioned'`);

function toUsage(rows: readonly AdmittedRow[], isGuarantee: boolean): readonly AdmittedUsage[] {
  return rows.map(({ scope, account_id: accountId, second, requests, tokens }) => {
    return { limitScope: scope, accountId, isGuarantee, at: second * 1_000, requests, tokens };
  });
}
