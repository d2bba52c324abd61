import type { Database } from "bun:sqlite";
import type { Key, KeySecret } from "../../domain/key.ts";
import type { KeyStore, StoredSecret } from "../store.ts";

interface KeyRow {
  readonly id: string;
  readonly application: string;
  readonly environment: string;
  readonly plan: string;
  readonly requests_per_minute: number | null;
  readonly tokens_per_minute: number | null;
  readonly created_at: number;
  readonly revoked_at: number | null;
}

interface SecretRow extends KeyRow {
  readonly public_id: string;
  readonly digest: Uint8Array;
  readonly secret_created_at: number;
  readonly expires_at: number | null;
}

/** Keys in SQLite. The statements are synchronous; the interface is not, for other backends. */
export class SqliteKeyStore implements KeyStore {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  create(key: Key, secret: KeySecret): Promise<void> {
    const insert = this.#database.transaction(() => {
      this.#database.run(
        `INSERT INTO keys (id, application, environment, plan, requests_per_minute,
           tokens_per_minute, created_at, revoked_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
        [
          key.id,
          key.application,
          key.environment,
          key.plan,
          key.limits?.requestsPerMinute ?? null,
          key.limits?.tokensPerMinute ?? null,
          key.createdAt,
          key.revokedAt ?? null,
        ],
      );
      this.#database.run(
        `INSERT INTO secrets (public_id, key_id, digest, created_at, expires_at)
         VALUES (?, ?, ?, ?, ?)`,
        [secret.publicId, key.id, secret.digest, secret.createdAt, secret.expiresAt ?? null],
      );
    });
    return asPromise(() => insert.immediate());
  }

  list(): Promise<readonly Key[]> {
    const query = this.#database.query<KeyRow, []>(
      "SELECT * FROM keys ORDER BY created_at DESC, id",
    );
    return asPromise(() => query.all().map(toKey));
  }

  revoke(keyId: string, revokedAt: number): Promise<boolean> {
    return asPromise(() => {
      const { changes } = this.#database.run(
        "UPDATE keys SET revoked_at = coalesce(revoked_at, ?) WHERE id = ?",
        [revokedAt, keyId],
      );
      return changes > 0;
    });
  }

  loadSecrets(): Promise<readonly StoredSecret[]> {
    const query = this.#database.query<SecretRow, []>(
      `SELECT keys.*, secrets.public_id, secrets.digest, secrets.expires_at,
         secrets.created_at AS secret_created_at
       FROM secrets JOIN keys ON keys.id = secrets.key_id WHERE keys.revoked_at IS NULL`,
    );
    return asPromise(() => query.all().map(toStoredSecret));
  }

  version(): Promise<number> {
    const query = this.#database.query<{ data_version: number }, []>("PRAGMA data_version");
    return asPromise(() => query.get()?.data_version ?? 0);
  }
}

function toKey(row: KeyRow): Key {
  const { requests_per_minute: requests, tokens_per_minute: tokens } = row;
  const limits =
    requests === null || tokens === null
      ? undefined
      : { requestsPerMinute: requests, tokensPerMinute: tokens };
  return {
    id: row.id,
    application: row.application,
    environment: row.environment,
    plan: row.plan,
    limits,
    createdAt: row.created_at,
    revokedAt: row.revoked_at ?? undefined,
  };
}

function toStoredSecret(row: SecretRow): StoredSecret {
  return {
    key: toKey(row),
    secret: {
      publicId: row.public_id,
      keyId: row.id,
      digest: row.digest,
      createdAt: row.secret_created_at,
      expiresAt: row.expires_at ?? undefined,
    },
  };
}

/** What a synchronous step throws becomes a rejection, as callers of the interface expect. */
function asPromise<Value>(step: () => Value): Promise<Value> {
  return new Promise((resolve) => resolve(step()));
}
