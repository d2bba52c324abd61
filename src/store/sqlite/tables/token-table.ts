import type { PepperedDigest } from "../../../domain/keys/peppers.ts";
import { type ManagementToken, scopes } from "../../../domain/accounts/user.ts";
import { equals, Table, type TableSpec } from "../table.ts";
import { readTexts } from "./text-list.ts";

export interface TokenRow {
  readonly id: string;
  readonly user_id: string;
  readonly name: string;
  readonly public_id: string;
  readonly parent_id: string | null;
  readonly digest: Uint8Array;
  readonly pepper: string | null;
  readonly scopes: string;
  readonly created_at: number;
  readonly expires_at: number;
  readonly last_used_at: number | null;
  readonly revoked_at: number | null;
}

interface TokenFilter {
  readonly userId?: string | undefined;
}

export const tokenTable: TableSpec<ManagementToken, TokenRow, TokenFilter> = {
  table: "management_tokens",
  fixed: [],
  values: (token) => ({
    id: token.id,
    user_id: token.userId,
    name: token.name,
    public_id: token.publicId,
    parent_id: token.parentId ?? null,
    digest: token.digest,
    pepper: token.pepper ?? null,
    scopes: JSON.stringify(token.scopes),
    created_at: token.createdAt,
    expires_at: token.expiresAt,
    last_used_at: token.lastUsedAt ?? null,
    revoked_at: token.revokedAt ?? null,
  }),
  read: readToken,
  conditions: (filter) => [equals("user_id", filter.userId)],
};

export class TokenTable extends Table<ManagementToken, TokenRow, TokenFilter> {
  findByPublicId(publicId: string): Promise<ManagementToken | undefined> {
    return this.findBy("public_id", publicId);
  }

  used(id: string, at: number): Promise<void> {
    return this.scope.run((database) => {
      database
        .query<unknown, [number, string]>(
          `UPDATE management_tokens SET last_used_at = max(coalesce(last_used_at, 0), ?)
           WHERE id = ?`,
        )
        .run(at, id);
    });
  }

  renew(id: string, { digest, pepper }: PepperedDigest): Promise<void> {
    return this.scope.run((database) => {
      database
        .query<unknown, [Uint8Array, string, string]>(
          "UPDATE management_tokens SET digest = ?, pepper = ? WHERE id = ?",
        )
        .run(digest, pepper, id);
    });
  }

  revoke(id: string, at: number): Promise<readonly string[]> {
    return this.#revokeBy("id", id, at);
  }

  revokeOf(userId: string, at: number): Promise<readonly string[]> {
    return this.#revokeBy("user_id", userId, at);
  }

  /** With all that was made with them. What is revoked stays as it was: the time tells since when. */
  #revokeBy(column: "id" | "user_id", value: string, at: number): Promise<readonly string[]> {
    return this.scope.run((database) =>
      database
        .query<{ id: string }, [string, number]>(
          `WITH RECURSIVE ended (id) AS (
             SELECT id FROM management_tokens WHERE ${column} = ?
             UNION
             SELECT made.id FROM management_tokens AS made JOIN ended ON made.parent_id = ended.id)
           UPDATE management_tokens SET revoked_at = ?
           WHERE id IN (SELECT id FROM ended) AND revoked_at IS NULL RETURNING id`,
        )
        .all(value, at)
        .map(({ id }) => id),
    );
  }
}

function readToken(row: TokenRow): ManagementToken {
  const held = new Set(readTexts(row.scopes));
  return {
    id: row.id,
    userId: row.user_id,
    name: row.name,
    publicId: row.public_id,
    parentId: row.parent_id ?? undefined,
    digest: row.digest,
    pepper: row.pepper ?? undefined,
    scopes: scopes.filter((scope) => held.has(scope)),
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    lastUsedAt: row.last_used_at ?? undefined,
    revokedAt: row.revoked_at ?? undefined,
  };
}
