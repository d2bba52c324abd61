import type { Database } from "bun:sqlite";

/**
 * Whoever follows the keys asks for what changed since an epoch. Each changed key gets an epoch of
 * its own, in the transaction of the change. A change of an application or an account says nothing
 * new of keys that were revoked.
 */
export function bumpKeys(
  database: Database,
  by: "id" | "application_id" | "account_id",
  id: string,
): void {
  const isLeft = by === "id" ? "" : "AND keys.revoked_at IS NULL";
  const { changes } = database
    .query<unknown, [string]>(
      `UPDATE keys SET changed_epoch = changed.epoch
       FROM (
         SELECT keys.id, epochs.value + row_number() OVER (ORDER BY changed_epoch) AS epoch
         FROM keys CROSS JOIN epochs WHERE keys.${by} = ? ${isLeft} AND epochs.name = 'keys'
       ) AS changed
       WHERE keys.id = changed.id`,
    )
    .run(id);
  raiseEpoch(database, changes);
}

/** The epoch for a key that is about to be inserted. */
export function nextEpoch(database: Database): number {
  raiseEpoch(database, 1);
  return currentEpoch(database);
}

/**
 * Leaves a note of a key that is about to be removed; without it, it would go on to live. What its
 * limits have counted is left to the next key of its account.
 */
export function noteRemoval(database: Database, keyId: string): void {
  database.run(
    `INSERT OR REPLACE INTO left_limit_scopes
     SELECT id, limit_scope, account_id, application_id, revoked_at FROM keys
     WHERE id = ? AND revoked_at IS NOT NULL`,
    [keyId],
  );
  database
    .query<unknown, [number, string]>(
      "INSERT INTO removed_keys (changed_epoch, key_id) SELECT ?, id FROM keys WHERE id = ?",
    )
    .run(nextEpoch(database), keyId);
}

export function currentEpoch(database: Database): number {
  const row = database
    .query<{ value: number }, []>("SELECT value FROM epochs WHERE name = 'keys'")
    .get();
  return row?.value ?? 0;
}

function raiseEpoch(database: Database, by: number): void {
  database
    .query<unknown, [number]>("UPDATE epochs SET value = value + ? WHERE name = 'keys'")
    .run(by);
}
