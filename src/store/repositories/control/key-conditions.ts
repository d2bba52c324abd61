import { type Expression, sql, type SqlBool } from "kysely";
import type { KeyFilter } from "../../control-store.ts";
import { type Condition, equals, equalsUnindexed, scanned } from "../entity-table.ts";

/** The conditions of a list of keys. */
export function keyConditions(filter: KeyFilter): readonly (Condition | undefined)[] {
  const { environment, isActive: active, countsAt: now } = filter;
  return [
    ...ownerConditions(filter),
    scanned(equals("applications.environment", environment)),
    scanned(active && { holds: isActive(active) }),
    scanned(now === undefined ? undefined : { holds: countsAt(now) }),
  ];
}

/** Conditions on the owner of a key; only the narrowest one uses an index. */
function ownerConditions(filter: KeyFilter): readonly (Condition | undefined)[] {
  const { provisionedPool: pool, applicationId, accountId, plan } = filter;
  if (pool !== undefined) {
    return [
      equals("keys.provisionedPool", pool),
      scanned(equalsUnindexed("keys.applicationId", applicationId)),
      scanned(equalsUnindexed("keys.accountId", accountId)),
      scanned(equalsUnindexed("keys.plan", plan)),
    ];
  }
  return [
    // An application belongs to one account, so its index is narrower.
    applicationId === undefined
      ? equals("keys.accountId", accountId)
      : equalsUnindexed("keys.accountId", accountId),
    equals("keys.applicationId", applicationId),
    accountId === undefined && applicationId === undefined
      ? equals("keys.plan", plan)
      : scanned(equalsUnindexed("keys.plan", plan)),
  ];
}

/** Neither revoked nor expired, so its units count as sold. */
export function countsAt(now: number): Expression<SqlBool> {
  return sql`keys.provisioned_units > 0 and keys.revoked_at is null
    and (keys.expires_at is null or keys.expires_at > ${now})`;
}

function isActive({ value, now }: NonNullable<KeyFilter["isActive"]>): Expression<SqlBool> {
  const works = sql<SqlBool>`(
    keys.revoked_at is null and keys.disabled_at is null
    and (keys.expires_at is null or keys.expires_at > ${now})
    and applications.disabled_at is null
    and exists (
      select 1 from accounts where accounts.id = keys.account_id and accounts.disabled_at is null)
    and exists (
      select 1 from secrets where secrets.key_id = keys.id
      and (secrets.expires_at is null or secrets.expires_at > ${now})))`;
  return value ? works : sql`not ${works}`;
}
