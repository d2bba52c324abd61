import type { Database } from "bun:sqlite";
import type { Application } from "../../../domain/accounts/account.ts";
import type { Key } from "../../../domain/keys/key.ts";
import type { Role } from "../../../domain/accounts/user.ts";
import { limitHistoryMs } from "../../../domain/limits/slots.ts";
import type { KeyFilter, SoldUnitsFilter } from "../../control-store.ts";
import { bumpKeys, nextEpoch, noteRemoval } from "../key-epochs.ts";
import {
  type Condition,
  equals,
  insertRow,
  scanned,
  type SqlValue,
  Table,
  type TableSpec,
  whereAll,
} from "../table.ts";
import { readLimits, writeLimits, type LimitsColumns } from "./limits-columns.ts";
import { readTexts } from "./text-list.ts";

export interface KeyRow extends LimitsColumns {
  readonly id: string;
  readonly application_id: string;
  readonly account_id: string;
  readonly plan: string;
  readonly limit_scope: string;
  readonly provisioned_units: number;
  readonly provisioned_pool: string | null;
  readonly allowed_models: string | null;
  readonly allowed_networks: string | null;
  readonly note: string;
  readonly created_at: number;
  readonly expires_at: number | null;
  readonly disabled_at: number | null;
  readonly disabled_by: Role | null;
  readonly revoked_at: number | null;
  readonly revision: number;
  readonly application: string;
  readonly environment: string;
}

export const keyTable: TableSpec<Key, KeyRow, KeyFilter> = {
  table: "keys",
  // Cross: keys come first, in the order of their index, whatever else there is to filter by.
  select: `SELECT keys.*, applications.name AS application, applications.environment
    FROM keys CROSS JOIN applications ON applications.id = keys.application_id`,
  fixed: ["application_id", "account_id"],
  values: (key) => ({
    id: key.id,
    application_id: key.applicationId,
    account_id: key.accountId,
    plan: key.plan,
    limit_scope: key.limitScope,
    ...writeLimits(key.limits),
    provisioned_units: key.provisionedUnits,
    provisioned_pool: key.provisionedPool ?? null,
    allowed_models: writeTexts(key.allowedModels),
    allowed_networks: writeTexts(key.allowedNetworks),
    note: key.note,
    created_at: key.createdAt,
    expires_at: key.expiresAt ?? null,
    disabled_at: key.disabledAt ?? null,
    disabled_by: key.disabledBy ?? null,
    revoked_at: key.revokedAt ?? null,
    revision: key.revision,
  }),
  read: readKey,
  conditions: (filter) => [
    ...ownerConditions(filter),
    scanned(equals("applications.environment", filter.environment)),
    scanned(filter.isActive && isActive(filter.isActive)),
    scanned(filter.countsAt === undefined ? undefined : countsAt(filter.countsAt)),
  ],
  onChange: (database, id) => bumpKeys(database, "id", id),
  onRemove: noteRemoval,
};

export const countLiveSql = `
  SELECT count(*) AS keys FROM (
    SELECT 1 FROM keys WHERE account_id = ? AND revoked_at IS NULL LIMIT ?)`;

/**
 * What keys of an account that were revoked lately leave behind, and nobody has taken over: of one
 * application first, the latest first.
 */
export const freeLimitScopeSql = `
  SELECT limit_scope FROM (
    SELECT limit_scope, application_id, revoked_at FROM keys
    WHERE account_id = ?1 AND revoked_at >= ?2
    UNION ALL
    SELECT limit_scope, application_id, revoked_at FROM left_limit_scopes
    WHERE account_id = ?1 AND revoked_at >= ?2
  ) AS left_over
  WHERE NOT EXISTS (SELECT 1 FROM keys AS holder
    WHERE holder.limit_scope = left_over.limit_scope AND holder.revoked_at IS NULL)
  ORDER BY application_id = ?3 DESC, revoked_at DESC LIMIT 1`;

/** Of one pool, or of all of them; of one account, or of all. */
export function soldUnitsStatement({ pool, accountId, now }: SoldUnitsFilter): Condition {
  const conditions = [
    equals("keys.provisioned_pool", pool) ?? { sql: "keys.provisioned_pool NOT NULL", values: [] },
    equals("+keys.account_id", accountId),
    countsAt(now),
  ].filter((condition) => condition !== undefined);
  return {
    sql: `SELECT provisioned_pool AS pool, sum(provisioned_units) AS units FROM keys
      ${whereAll(conditions)} GROUP BY provisioned_pool`,
    values: conditions.flatMap(({ values }) => values),
  };
}

export class KeyTable extends Table<Key, KeyRow, KeyFilter> {
  countLive(accountId: string, upTo: number): Promise<number> {
    return this.scope.run((database) => {
      const query = database.query<{ keys: number }, [string, number]>(countLiveSql);
      return query.get(accountId, upTo)?.keys ?? 0;
    });
  }

  freeLimitScope({ accountId, id }: Application, now: number): Promise<string | undefined> {
    return this.scope.run((database) => {
      const query = database.query<{ limit_scope: string }, [string, number, string]>(
        freeLimitScopeSql,
      );
      return query.get(accountId, now - limitHistoryMs, id)?.limit_scope;
    });
  }

  soldUnits(filter: SoldUnitsFilter): Promise<ReadonlyMap<string, number>> {
    return this.scope.run((database) => {
      const { sql, values } = soldUnitsStatement(filter);
      const rows = database.query<{ pool: string; units: number }, SqlValue[]>(sql).all(...values);
      return new Map(rows.map(({ pool, units }) => [pool, units]));
    });
  }

  override insert(key: Key): Promise<void> {
    return this.scope.run((database) => {
      checkOwner(database, key);
      const values = { ...keyTable.values(key), changed_epoch: nextEpoch(database) };
      insertRow(database, "keys", values);
    });
  }
}

export function readKey(row: KeyRow): Key {
  return {
    id: row.id,
    accountId: row.account_id,
    applicationId: row.application_id,
    application: row.application,
    environment: row.environment,
    plan: row.plan,
    limitScope: row.limit_scope,
    limits: readLimits(row),
    provisionedUnits: row.provisioned_units,
    provisionedPool: row.provisioned_pool ?? undefined,
    allowedModels: row.allowed_models === null ? undefined : readTexts(row.allowed_models),
    allowedNetworks: row.allowed_networks === null ? undefined : readTexts(row.allowed_networks),
    note: row.note,
    createdAt: row.created_at,
    expiresAt: row.expires_at ?? undefined,
    disabledAt: row.disabled_at ?? undefined,
    disabledBy: row.disabled_by ?? undefined,
    revokedAt: row.revoked_at ?? undefined,
    revision: row.revision,
  };
}

function writeTexts(texts: readonly string[] | undefined): string | null {
  return texts === undefined ? null : JSON.stringify(texts);
}

/** A key repeats whose it is; a copy that differs would show it to another account. */
function checkOwner(database: Database, key: Key): void {
  const owner = database
    .query<{ account_id: string; environment: string; name: string }, [string]>(
      "SELECT account_id, environment, name FROM applications WHERE id = ?",
    )
    .get(key.applicationId);
  if (
    owner?.account_id !== key.accountId ||
    owner.environment !== key.environment ||
    owner.name !== key.application
  ) {
    throw new Error(`the key ${key.id} does not fit its application ${key.applicationId}`);
  }
}

/** What a key belongs to, by the narrowest index of what the filter names; the rest is looked at. */
function ownerConditions(filter: KeyFilter): readonly (Condition | undefined)[] {
  const { provisionedPool: pool, applicationId, accountId, plan } = filter;
  if (pool !== undefined) {
    return [
      equals("keys.provisioned_pool", pool),
      scanned(equals("+keys.application_id", applicationId)),
      scanned(equals("+keys.account_id", accountId)),
      scanned(equals("+keys.plan", plan)),
    ];
  }
  return [
    // An application is of one account: its index is the narrower one.
    applicationId === undefined
      ? equals("keys.account_id", accountId)
      : equals("+keys.account_id", accountId),
    equals("keys.application_id", applicationId),
    accountId === undefined && applicationId === undefined
      ? equals("keys.plan", plan)
      : scanned(equals("+keys.plan", plan)),
  ];
}

/** Neither revoked nor expired: what it holds cannot be sold to another. */
function countsAt(now: number): Condition {
  const sql = `keys.provisioned_units > 0 AND keys.revoked_at IS NULL
    AND (keys.expires_at IS NULL OR keys.expires_at > ?)`;
  return { sql, values: [now] };
}

function isActive({ value, now }: NonNullable<KeyFilter["isActive"]>): Condition {
  const works = `keys.revoked_at IS NULL AND keys.disabled_at IS NULL
    AND (keys.expires_at IS NULL OR keys.expires_at > ?)
    AND applications.disabled_at IS NULL
    AND EXISTS (SELECT 1 FROM accounts
      WHERE accounts.id = keys.account_id AND accounts.disabled_at IS NULL)
    AND EXISTS (SELECT 1 FROM secrets
      WHERE secrets.key_id = keys.id AND (secrets.expires_at IS NULL OR secrets.expires_at > ?))`;
  return { sql: value ? works : `NOT (${works})`, values: [now, now] };
}
