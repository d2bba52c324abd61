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
  const owned = queries.selectFrom("keys").where(by, "=", id);
  const changed = by === "id" ? owned : owned.where("revokedAt", "is", null);
  const { numUpdatedRows } = await queries
    .updateTable("keys")
    .from(
      changed
        .crossJoin("epochs")
        .where("epochs.name", "=", "keys")
        .select("keys.id")
        .select(
          sql<number>`epochs.value + row_number() over (order by keys.changed_epoch)`.as("epoch"),
        )
        .as("changed"),
    )
    .set((eb) => ({ changedEpoch: eb.ref("changed.epoch") }))
    .whereRef("keys.id", "=", "changed.id")
    .executeTakeFirstOrThrow();
  await raiseEpoch(queries, Number(numUpdatedRows));
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
