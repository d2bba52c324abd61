import { type RawBuilder, sql } from "kysely";
import { limitHistoryMs } from "../../../domain/limits/slots.ts";
import type { AdmittedUsage } from "../../usage-reports.ts";
import { withRawRows } from "../raw-rows.ts";
import type { Queries } from "../tables.ts";

interface AdmittedRow {
  readonly scope: string;
  readonly account_id: string;
  readonly second: number;
  readonly requests: number;
  readonly tokens: number;
}

/**
 * What keys were admitted for since a time, by the second. Admissions within guarantees reach
 * further back, by the longest time a guarantee counts. Calls without a tried target were refused,
 * unless the process ended during them; of those at least the reservation counts, because their use
 * is unknown. Use beyond a reservation counts from the end of the call, even if it began up to an
 * hour earlier.
 */
export async function readAdmitted(
  queries: Queries,
  since: number,
): Promise<readonly AdmittedUsage[]> {
  const historySince = since - limitHistoryMs;
  const plain = withRawRows(queries);
  const plans = await ofPlans(since).execute(plain);
  const excess = await beyondReservations(historySince, since).execute(plain);
  const guarantees = await ofGuarantees(historySince).execute(plain);
  return [
    ...toUsage(plans.rows, false),
    ...toUsage(excess.rows, false),
    ...toUsage(guarantees.rows, true),
  ];
}

const isAdmitted = sql`(attempts > 0 or outcome = 'interrupted')`;
const used = sql`input_tokens + output_tokens`;
const reserved = sql`coalesce(reserved_tokens, 0)`;
const usedOrReserved = sql`case
  when outcome = 'interrupted' and ${reserved} > ${used} then ${reserved} else ${used} end`;
const withinReservation = sql`case
  when outcome = 'interrupted' then ${usedOrReserved}
  when reserved_tokens < ${used} then reserved_tokens else ${used} end`;

interface Sums {
  readonly second: RawBuilder<unknown>;
  readonly requests: RawBuilder<unknown>;
  readonly tokens: RawBuilder<unknown>;
  /** The condition on `usage`. */
  readonly where: RawBuilder<unknown>;
}

function sumsOf({ second, requests, tokens, where }: Sums): RawBuilder<AdmittedRow> {
  return sql`
    select coalesce(keys.limit_scope, left_limit_scopes.limit_scope, admitted.key_id) as scope,
      admitted.account_id, second, requests, tokens
    from (
      select key_id, account_id, ${second} as second, ${requests} as requests,
        sum(${tokens}) as tokens
      from usage where ${where} and ${isAdmitted} group by key_id, account_id, 3
    ) as admitted
    left join keys on keys.id = admitted.key_id
    left join left_limit_scopes on left_limit_scopes.key_id = admitted.key_id`;
}

const begun = { second: sql`started_at / 1000`, requests: sql`count(*)` };

const ofPlans = (since: number): RawBuilder<AdmittedRow> =>
  sumsOf({
    ...begun,
    tokens: withinReservation,
    where: sql`started_at >= ${since} and capacity_class <> 'provisioned'`,
  });

const beyondReservations = (begunSince: number, endedSince: number): RawBuilder<AdmittedRow> =>
  sumsOf({
    second: sql`cast(floor(started_at + duration_ms) as bigint) / 1000`,
    requests: sql`0`,
    tokens: sql`${used} - reserved_tokens`,
    where: sql`started_at >= ${begunSince} and ${used} > reserved_tokens
      and started_at + duration_ms >= ${endedSince}
      and capacity_class <> 'provisioned' and outcome <> 'interrupted'`,
  });

// Joined from the few keys that ever had a guarantee, because an hour of all calls is too much.
const ofGuarantees = (since: number): RawBuilder<AdmittedRow> =>
  sumsOf({
    ...begun,
    tokens: usedOrReserved,
    where: sql`
      key_id in (
        select key_id from usage_groups where capacity_class = 'provisioned')
      and started_at >= ${since} and capacity_class = 'provisioned'`,
  });

function toUsage(rows: readonly AdmittedRow[], isGuarantee: boolean): readonly AdmittedUsage[] {
  return rows.map(({ scope, account_id: accountId, second, requests, tokens }) => {
    return { limitScope: scope, accountId, isGuarantee, at: second * 1_000, requests, tokens };
  });
}
