import type { Database } from "bun:sqlite";
import { longestGuaranteeSeconds } from "../../limits/slots.ts";
import type { AdmittedUsage } from "../usage-reports.ts";

interface AdmittedRow {
  readonly key_id: string;
  readonly second: number;
  readonly requests: number;
  readonly tokens: number;
}

/**
 * What keys were admitted for since a time, by the second; within their guarantees, since as long
 * before that as a guarantee may count. Calls that no target was tried for were refused, unless the
 * process ended under them.
 */
export function readAdmitted(database: Database, since: number): readonly AdmittedUsage[] {
  const guaranteedSince = since - longestGuaranteeSeconds * 1_000;
  return [
    ...toUsage(database.query<AdmittedRow, [number]>(ofPlans).all(since), false),
    ...toUsage(database.query<AdmittedRow, [number]>(ofGuarantees).all(guaranteedSince), true),
  ];
}

const sums = `SELECT key_id, started_at / 1000 AS second, count(*) AS requests,
    sum(input_tokens + output_tokens) AS tokens FROM usage`;
const isAdmitted = "(attempts > 0 OR outcome = 'interrupted')";

const ofPlans = `${sums}
  WHERE started_at >= ? AND capacity_class <> 'provisioned' AND ${isAdmitted}
  GROUP BY key_id, second`;

// By the few keys that ever had a guarantee: an hour of everybody's calls is too much to read.
const ofGuarantees = `${sums}
  WHERE key_id IN (SELECT key_id FROM usage_groups WHERE capacity_class = 'provisioned' AND detail = 0)
    AND started_at >= ? AND capacity_class = 'provisioned' AND ${isAdmitted}
  GROUP BY key_id, second`;

function toUsage(rows: readonly AdmittedRow[], isGuarantee: boolean): readonly AdmittedUsage[] {
  return rows.map(({ key_id: keyId, second, requests, tokens }) => {
    return { keyId, isGuarantee, at: second * 1_000, requests, tokens };
  });
}
