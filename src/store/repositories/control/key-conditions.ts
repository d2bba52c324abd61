import { expressionBuilder, type Expression, type SqlBool } from "kysely";
import type { KeyFilter } from "../../control-store.ts";
import { type Condition, equals, equalsUnindexed, scanned } from "../entity-table.ts";
import type { Tables } from "../tables.ts";

const eb = expressionBuilder<Tables, "keys" | "applications">();

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
  return eb.and([
    eb("keys.provisionedUnits", ">", 0),
    eb("keys.revokedAt", "is", null),
    eb.or([eb("keys.expiresAt", "is", null), eb("keys.expiresAt", ">", now)]),
  ]);
}

function isActive({ value, now }: NonNullable<KeyFilter["isActive"]>): Expression<SqlBool> {
  const works = eb.and([
    eb("keys.revokedAt", "is", null),
    eb("keys.disabledAt", "is", null),
    eb.or([eb("keys.expiresAt", "is", null), eb("keys.expiresAt", ">", now)]),
    eb("applications.disabledAt", "is", null),
    eb.exists(
      eb
        .selectFrom("accounts")
        .select("accounts.id")
        .whereRef("accounts.id", "=", "keys.accountId")
        .where("accounts.disabledAt", "is", null),
    ),
    eb.exists(
      eb
        .selectFrom("secrets")
        .select("secrets.publicId")
        .whereRef("secrets.keyId", "=", "keys.id")
        .where((of) =>
          of.or([of("secrets.expiresAt", "is", null), of("secrets.expiresAt", ">", now)]),
        ),
    ),
  ]);
  return value ? works : eb.not(works);
}
