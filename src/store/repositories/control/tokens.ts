import { sql } from "kysely";
import { scopes } from "../../../domain/principal.ts";
import type { PepperedDigest } from "../../../domain/keys/peppers.ts";
import { type EntitySpec, EntityTable, equals } from "../entity-table.ts";
import { present, readTexts } from "../row.ts";
import type { Queries, TokenRow } from "../tables.ts";
import type { ManagementToken } from "../../entities.ts";

interface TokenFilter {
  readonly userId?: string | undefined;
}

const spec: EntitySpec<ManagementToken, TokenRow, TokenFilter> = {
  table: "managementTokens",
  select: (queries) => queries.selectFrom("managementTokens").selectAll(),
  fixed: [],
  write: (token) => ({ ...token, scopes: JSON.stringify(token.scopes) }),
  read: (row) => {
    const held = new Set(readTexts(row.scopes));
    return { ...present(row), scopes: scopes.filter((scope) => held.has(scope)) };
  },
  conditions: ({ userId }) => [equals("managementTokens.userId", userId)],
};

export class Tokens extends EntityTable<ManagementToken, TokenRow, TokenFilter> {
  constructor(queries: Queries) {
    super(spec, queries);
  }

  findByPublicId(publicId: string): Promise<ManagementToken | undefined> {
    return this.findBy({ publicId });
  }

  async used(id: string, at: number): Promise<void> {
    await this.queries
      .updateTable("managementTokens")
      .set({ lastUsedAt: at })
      .where("id", "=", id)
      .where((eb) => eb.or([eb("lastUsedAt", "is", null), eb("lastUsedAt", "<", at)]))
      .execute();
  }

  /** Replaces the digest by one under another pepper. */
  async renew(id: string, { digest, pepper }: PepperedDigest): Promise<void> {
    const update = this.queries.updateTable("managementTokens").set({ digest, pepper });
    await update.where("id", "=", id).execute();
  }

  /** Ends its descendants, too; returns the ids of all that this ended. */
  revoke(id: string, at: number): Promise<readonly string[]> {
    return this.#revokeBy("id", id, at);
  }

  revokeOf(userId: string, at: number): Promise<readonly string[]> {
    return this.#revokeBy("userId", userId, at);
  }

  /** Revokes the tokens with their descendants. Tokens revoked earlier keep their time. */
  async #revokeBy(column: "id" | "userId", value: string, at: number): Promise<readonly string[]> {
    const { rows } = await sql<{ id: string }>`
      with recursive ended as (
        select id from management_tokens where ${sql.ref(column)} = ${value}
        union
        select made.id from management_tokens as made join ended on made.parent_id = ended.id
      )
      update management_tokens set revoked_at = ${at}
      where id in (select id from ended) and revoked_at is null returning id`.execute(this.queries);
    return rows.map(({ id }) => id);
  }
}
