import type { Database } from "bun:sqlite";
import type { KeySecret } from "../../../domain/keys/key.ts";
import { bumpKeys } from "../key-epochs.ts";
import type { Scope } from "../connection/scope.ts";
import { insertRow } from "../table.ts";

export interface SecretRow {
  readonly public_id: string;
  readonly key_id: string;
  readonly digest: Uint8Array;
  readonly pepper: string | null;
  readonly created_at: number;
  readonly expires_at: number | null;
  readonly last_used_at: number | null;
}

const mostOfOneKey = 100;

export class SecretTable {
  readonly #scope: Scope;

  constructor(scope: Scope) {
    this.#scope = scope;
  }

  ofKey(keyId: string): Promise<readonly KeySecret[]> {
    return this.#scope.run((database) =>
      database
        .query<SecretRow, [string, number]>(
          // Of many, the live ones must be among those read, however often a key was rotated.
          `SELECT * FROM secrets WHERE public_id IN (
             SELECT public_id FROM secrets WHERE key_id = ?
             ORDER BY expires_at IS NULL DESC, expires_at DESC, created_at DESC LIMIT ?)
           ORDER BY created_at DESC, public_id DESC`,
        )
        .all(keyId, mostOfOneKey)
        .map(readSecret),
    );
  }

  get(publicId: string): Promise<KeySecret | undefined> {
    return this.#scope.run((database) => find(database, publicId));
  }

  insert(secret: KeySecret): Promise<void> {
    return this.#scope.run((database) => {
      insertRow(database, "secrets", {
        public_id: secret.publicId,
        key_id: secret.keyId,
        digest: secret.digest,
        pepper: secret.pepper ?? null,
        created_at: secret.createdAt,
        expires_at: secret.expiresAt ?? null,
        last_used_at: secret.lastUsedAt ?? null,
      });
      bumpKeys(database, "id", secret.keyId);
    });
  }

  expire(publicId: string, expiresAt: number): Promise<void> {
    return this.#scope.run((database) => {
      const secret = find(database, publicId);
      if (secret === undefined) throw new Error(`there is no secret ${publicId}`);
      database
        .query<unknown, [number, string]>("UPDATE secrets SET expires_at = ? WHERE public_id = ?")
        .run(expiresAt, publicId);
      bumpKeys(database, "id", secret.keyId);
    });
  }
}

export function readSecret(row: SecretRow): KeySecret {
  return {
    publicId: row.public_id,
    keyId: row.key_id,
    digest: row.digest,
    pepper: row.pepper ?? undefined,
    createdAt: row.created_at,
    expiresAt: row.expires_at ?? undefined,
    lastUsedAt: row.last_used_at ?? undefined,
  };
}

function find(database: Database, publicId: string): KeySecret | undefined {
  const row = database
    .query<SecretRow, [string]>("SELECT * FROM secrets WHERE public_id = ?")
    .get(publicId);
  return row === null ? undefined : readSecret(row);
}
