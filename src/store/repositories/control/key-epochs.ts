import { sql } from "kysely";
import type { Queries } from "../tables.ts";

/**
 * Key rings load what changed since an epoch. Each changed key gets its own epoch, in the
 * transaction of the change. A change of an application or an account skips revoked keys.
 */
export async function bumpKeys(
  queries: Queries,
  by: "id" | "applicationId" | "accountId",
  id: string,
): Promise<void> {
  const isLive = by === "id" ? sql`` : sql`and keys.revoked_at is null`;
  const { numAffectedRows = 0n } = await sql`
    update keys set changed_epoch = changed.epoch
    from (
      select keys.id, epochs.value + row_number() over (order by keys.changed_epoch) as epoch
      from keys cross join epochs
      where epochs.name = 'keys' and ${sql.ref(`keys.${by}`)} = ${id} ${isLive}
    ) as changed
    where keys.id = changed.id`.execute(queries);
  await raiseEpoch(queries, Number(numAffectedRows));
}

/** The epoch of a key about to be inserted. */
export async function nextEpoch(queries: Queries): Promise<number> {
  await raiseEpoch(queries, 1);
  return currentEpoch(queries);
}

/**
 * Records that a key is removed, so that key rings drop it. The usage counted by its limits passes
 * to the next key of its account.
 */
export async function noteRemoval(queries: Queries, keyId: string): Promise<void> {
  const key = await queries
    .selectFrom("keys")
    .select(["limitScope", "accountId", "applicationId", "revokedAt"])
    .where("id", "=", keyId)
    .executeTakeFirst();
  if (key === undefined) return;
  const { revokedAt, ...left } = key;
  if (revokedAt !== null) {
    await queries
      .insertInto("leftLimitScopes")
      .values({ keyId, ...left, revokedAt })
      .onConflict((conflict) => conflict.column("keyId").doUpdateSet({ ...left, revokedAt }))
      .execute();
  }
  const changedEpoch = await nextEpoch(queries);
  await queries.insertInto("removedKeys").values({ changedEpoch, keyId }).execute();
}

export async function currentEpoch(queries: Queries): Promise<number> {
  const query = queries.selectFrom("epochs").select("value").where("name", "=", "keys");
  return (await query.executeTakeFirst())?.value ?? 0;
}

async function raiseEpoch(queries: Queries, by: number): Promise<void> {
  await queries
    .updateTable("epochs")
    .set((eb) => ({ value: eb("value", "+", by) }))
    .where("name", "=", "keys")
    .execute();
}
