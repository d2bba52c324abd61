import type { Database } from "bun:sqlite";
import type { Clock } from "../../domain/clock.ts";
import type { KeySecret } from "../../domain/keys/key.ts";
import type { EndedKey, KeyChange, KeyChanges, KeyStore, RenewedSecret } from "../store.ts";
import type { SqliteConnection } from "./connection/connection.ts";
import { bumpKeys, currentEpoch } from "./key-epochs.ts";
import { type KeyRow, readKey } from "./tables/key-table.ts";
import { readLimits } from "./tables/limits-columns.ts";
import { readSecret, type SecretRow } from "./tables/secret-table.ts";

/** For how long secrets that ended are still told of: their refusals can then say so. */
const endedSecretsMs = 3_600_000;
/** The same of keys that may not be used any more. */
const endedKeysMs = 86_400_000;

interface ChangeRow extends KeyRow {
  readonly changed_epoch: number;
  readonly application_disabled_at: number | null;
  readonly account_disabled_at: number | null;
  readonly account_requests_per_minute: number | null;
  readonly account_tokens_per_minute: number | null;
}

interface RemovalRow {
  readonly changed_epoch: number;
  readonly key_id: string;
}

/** Keys in SQLite, for authentication. */
export class SqliteKeyStore implements KeyStore {
  readonly #connection: SqliteConnection;
  readonly #clock: Pick<Clock, "now">;

  constructor(connection: SqliteConnection, clock: Pick<Clock, "now">) {
    this.#connection = connection;
    this.#clock = clock;
  }

  loadKeys(since: number, limit: number): Promise<KeyChanges> {
    const now = this.#clock.now();
    return this.#connection.snapshot((database) => {
      // An older database was put in place: what was loaded from the other one says nothing.
      const start = since > currentEpoch(database) ? 0 : since;
      const changed = findChanges(database, start, limit + 1);
      const page = changed.slice(0, limit);
      return Promise.resolve({
        changes: page.map((change) => toChange(database, change, now)),
        epoch: page.at(-1)?.changed_epoch ?? start,
        hasMore: changed.length > limit,
      });
    });
  }

  recordLastUse(uses: ReadonlyMap<string, number>): Promise<void> {
    if (uses.size === 0) return Promise.resolve();
    return this.#connection.transact((database) => {
      const statement = database.query<unknown, [number, string, number]>(
        `UPDATE secrets SET last_used_at = ?
         WHERE public_id = ? AND (last_used_at IS NULL OR last_used_at < ?)`,
      );
      for (const [publicId, at] of uses) statement.run(at, publicId, at);
      return Promise.resolve();
    });
  }

  renewDigest({ publicId, stored, renewed }: RenewedSecret): Promise<void> {
    return this.#connection.transact((database) => {
      const row = database
        .query<{ key_id: string }, [Uint8Array, string, string, Uint8Array]>(
          `UPDATE secrets SET digest = ?, pepper = ? WHERE public_id = ? AND digest = ?
           RETURNING key_id`,
        )
        .get(renewed.digest, renewed.pepper, publicId, stored);
      if (row !== null) bumpKeys(database, "id", row.key_id);
      return Promise.resolve();
    });
  }
}

export const changesSql = `
  SELECT keys.*, applications.name AS application, applications.environment,
    applications.disabled_at AS application_disabled_at,
    accounts.disabled_at AS account_disabled_at,
    accounts.requests_per_minute AS account_requests_per_minute,
    accounts.tokens_per_minute AS account_tokens_per_minute
  FROM keys CROSS JOIN applications ON applications.id = keys.application_id
    CROSS JOIN accounts ON accounts.id = applications.account_id
  WHERE keys.changed_epoch > ? ORDER BY keys.changed_epoch LIMIT ?`;

export const removalsSql = `
  SELECT changed_epoch, key_id FROM removed_keys
  WHERE changed_epoch > ? ORDER BY changed_epoch LIMIT ?`;

export const secretsSql = `
  SELECT * FROM secrets WHERE key_id = ? AND (expires_at IS NULL OR expires_at > ?)
  ORDER BY created_at DESC, public_id DESC`;

/** Oldest change first. */
function findChanges(
  database: Database,
  since: number,
  limit: number,
): readonly (ChangeRow | RemovalRow)[] {
  const changed = database.query<ChangeRow, [number, number]>(changesSql).all(since, limit);
  const removed = database.query<RemovalRow, [number, number]>(removalsSql).all(since, limit);
  return [...changed, ...removed]
    .toSorted((one, other) => one.changed_epoch - other.changed_epoch)
    .slice(0, limit);
}

function toChange(database: Database, row: ChangeRow | RemovalRow, now: number): KeyChange {
  if ("key_id" in row) return { keyId: row.key_id, live: undefined };
  const key = readKey(row);
  const end = findEnd(row);
  const secrets = (): KeySecret[] => findSecrets(database, key.id, now - endedSecretsMs);
  if (end === undefined) {
    const accountLimits = readLimits({
      requests_per_minute: row.account_requests_per_minute,
      tokens_per_minute: row.account_tokens_per_minute,
    });
    return { keyId: key.id, live: { key, accountLimits, secrets: secrets() } };
  }
  const isRecent = end.at > now - endedKeysMs;
  const ended = { ...end, key, secrets: isRecent ? secrets() : [] };
  return { keyId: key.id, live: undefined, ended };
}

/** Why a key may not be used: first what became of itself. */
function findEnd(row: ChangeRow): Pick<EndedKey, "reason" | "at"> | undefined {
  if (row.revoked_at !== null) return { reason: "key_revoked", at: row.revoked_at };
  if (row.disabled_at !== null) return { reason: "key_disabled", at: row.disabled_at };
  const { application_disabled_at: ofApplication, account_disabled_at: ofAccount } = row;
  if (ofApplication !== null) return { reason: "application_disabled", at: ofApplication };
  if (ofAccount !== null) return { reason: "account_disabled", at: ofAccount };
  return undefined;
}

function findSecrets(database: Database, keyId: string, endedAfter: number): KeySecret[] {
  return database
    .query<SecretRow, [string, number]>(secretsSql)
    .all(keyId, endedAfter)
    .map(readSecret);
}
