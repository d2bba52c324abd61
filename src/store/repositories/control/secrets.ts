import { sql } from "kysely";
import type { KeySecret } from "../../../domain/keys/key.ts";
import { asRow, present } from "../row.ts";
import type { Queries } from "../tables.ts";
import { bumpKeys } from "./key-epochs.ts";

const mostOfOneKey = 100;

export function secretsIn(queries: Queries) {
  return {
    /** Newest first, ended ones included; at most the 100 with the latest end. */
    async ofKey(keyId: string): Promise<readonly KeySecret[]> {
      // Sorted by end, so that live secrets are read however often the key was rotated.
      const latest = queries
        .selectFrom("secrets")
        .select("publicId")
        .where("keyId", "=", keyId)
        .orderBy(sql`expires_at is null`, "desc")
        .orderBy("expiresAt", "desc")
        .orderBy("createdAt", "desc")
        .limit(mostOfOneKey);
      const rows = await queries
        .selectFrom("secrets")
        .selectAll()
        .where("publicId", "in", latest)
        .orderBy("createdAt", "desc")
        .orderBy("publicId", "desc")
        .execute();
      return rows.map(present);
    },

    async get(publicId: string): Promise<KeySecret | undefined> {
      const query = queries.selectFrom("secrets").selectAll().where("publicId", "=", publicId);
      const row = await query.executeTakeFirst();
      return row && present(row);
    },

    async insert(secret: KeySecret): Promise<void> {
      await queries.insertInto("secrets").values(asRow(secret)).execute();
      await bumpKeys(queries, "id", secret.keyId);
    },

    async expire(publicId: string, expiresAt: number): Promise<void> {
      const row = await queries
        .updateTable("secrets")
        .set({ expiresAt })
        .where("publicId", "=", publicId)
        .returning("keyId")
        .executeTakeFirst();
      if (row === undefined) throw new Error(`there is no secret ${publicId}`);
      await bumpKeys(queries, "id", row.keyId);
    },
  };
}
