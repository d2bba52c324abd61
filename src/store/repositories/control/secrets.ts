import { sql } from "kysely";
import type { KeySecret } from "../../../domain/keys/key.ts";
import { asRow, present } from "../row.ts";
import type { Queries, Row } from "../tables.ts";
import { bumpKeys } from "./key-epochs.ts";

const mostOfOneKey = 100;

export function secretsIn(queries: Queries) {
  return {
    /** Newest first, ended ones included; at most the 100 with the latest end. */
    async ofKey(keyId: string): Promise<readonly KeySecret[]> {
      // Sorted by end, so that live secrets are read however often the key was rotated.
      const { rows } = await sql<Row<KeySecret>>`
        select * from secrets where public_id in (
          select public_id from secrets where key_id = ${keyId}
          order by expires_at is null desc, expires_at desc, created_at desc limit ${mostOfOneKey})
        order by created_at desc, public_id desc`.execute(queries);
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
