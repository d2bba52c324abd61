import { sql } from "kysely";
import type { Application } from "../../entities.ts";
import type { Key } from "../../../domain/keys/key.ts";
import { limitHistoryMs } from "../../../domain/limits/slots.ts";
import type { KeyFilter, SoldUnitsFilter } from "../../control-store.ts";
import { type EntitySpec, EntityTable, unindexed } from "../entity-table.ts";
import { readLimits, readTexts, writeLimits, writeTexts } from "../row.ts";
import type { KeyColumns, Queries } from "../tables.ts";
import { bumpKeys, nextEpoch, noteRemoval } from "./key-epochs.ts";
import { countsAt, keyConditions } from "./key-conditions.ts";

/** Adds the name and the environment of the application. */
export interface KeyRow extends KeyColumns {
  application: string;
  environment: string;
}

const spec: EntitySpec<Key, KeyRow, KeyFilter> = {
  table: "keys",
  select: selectKeys,
  fixed: ["applicationId", "accountId"],
  // Both are columns of the application.
  write: ({ application: _name, environment: _environment, limits, ...key }) => ({
    ...key,
    ...writeLimits(limits),
    allowedModels: writeTexts(key.allowedModels),
    allowedNetworks: writeTexts(key.allowedNetworks),
  }),
  read: readKey,
  conditions: keyConditions,
  onChange: (queries, { after }) => bumpKeys(queries, "id", after.id),
  onRemove: noteRemoval,
};

/** A cross join, so that SQLite always reads keys first, in the order of their index. */
export function selectKeys(queries: Queries) {
  return queries
    .selectFrom("keys")
    .crossJoin("applications")
    .whereRef("applications.id", "=", "keys.applicationId")
    .selectAll("keys")
    .select(["applications.name as application", "applications.environment"]);
}

export class Keys extends EntityTable<Key, KeyRow, KeyFilter> {
  constructor(queries: Queries) {
    super(spec, queries);
  }

  async countLive(accountId: string, upTo: number): Promise<number> {
    const { rows } = await sql<{ keys: number }>`
      select count(*) as keys from (
        select 1 from keys where account_id = ${accountId} and revoked_at is null limit ${upTo}
      ) as live`.execute(this.queries);
    return rows[0]?.keys ?? 0;
  }

  /**
   * Limit scopes of an account's recently revoked keys that no other key has taken over: those of
   * one application first, latest first.
   */
  async freeLimitScope({ accountId, id }: Application, now: number): Promise<string | undefined> {
    const since = now - limitHistoryMs;
    const { rows } = await sql<{ limitScope: string }>`
      select limit_scope from (
        select limit_scope, application_id, revoked_at from keys
        where account_id = ${accountId} and revoked_at >= ${since}
        union all
        select limit_scope, application_id, revoked_at from left_limit_scopes
        where account_id = ${accountId} and revoked_at >= ${since}
      ) as freed
      where not exists (
        select 1 from keys as holder
        where holder.limit_scope = freed.limit_scope and holder.revoked_at is null)
      order by application_id = ${id} desc, revoked_at desc limit 1`.execute(this.queries);
    return rows[0]?.limitScope;
  }

  /** Sums units of one or all pools and of one or all accounts. */
  async soldUnits({ pool, accountId, now }: SoldUnitsFilter): Promise<ReadonlyMap<string, number>> {
    const conditions = [
      sql`provisioned_pool is not null`,
      countsAt(now),
      ...(pool === undefined ? [] : [sql`provisioned_pool = ${pool}`]),
      ...(accountId === undefined ? [] : [sql`${unindexed("accountId")} = ${accountId}`]),
    ];
    const { rows } = await sql<{ pool: string; units: number }>`
      select provisioned_pool as pool, sum(provisioned_units) as units from keys
      where ${sql.join(conditions, sql` and `)} group by provisioned_pool`.execute(this.queries);
    return new Map(rows.map(({ pool: of, units }) => [of, units]));
  }

  override async insert(key: Key): Promise<void> {
    await this.#checkOwner(key);
    await this.insertRow({ ...spec.write(key), changedEpoch: await nextEpoch(this.queries) });
  }

  /** Checks the key's copy of its owner; a wrong copy would show the key to another account. */
  async #checkOwner(key: Key): Promise<void> {
    const { id, applicationId, accountId, environment, application } = key;
    const { rows } = await sql`
      select 1 from applications where id = ${applicationId} and account_id = ${accountId}
      and environment = ${environment} and name = ${application}`.execute(this.queries);
    if (rows.length === 0) throw new Error(`the key ${id} does not fit its application`);
  }
}

export function readKey(row: KeyRow): Key {
  const { allowedModels: models, allowedNetworks: networks } = row;
  return {
    id: row.id,
    accountId: row.accountId,
    applicationId: row.applicationId,
    application: row.application,
    environment: row.environment,
    plan: row.plan,
    limitScope: row.limitScope,
    limits: readLimits(row),
    provisionedUnits: row.provisionedUnits,
    provisionedPool: row.provisionedPool ?? undefined,
    allowedModels: models === null ? undefined : readTexts(models),
    allowedNetworks: networks === null ? undefined : readTexts(networks),
    name: row.name,
    note: row.note,
    createdAt: row.createdAt,
    expiresAt: row.expiresAt ?? undefined,
    disabledAt: row.disabledAt ?? undefined,
    disabledBy: row.disabledBy ?? undefined,
    revokedAt: row.revokedAt ?? undefined,
    revision: row.revision,
  };
}
