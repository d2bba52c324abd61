import type { StoredReply } from "../../control-store.ts";
import { asRow, present } from "../row.ts";
import type { Queries } from "../tables.ts";

/** Replayable answers of the admin API. */
export function repliesIn(queries: Queries) {
  return {
    async get(id: string): Promise<StoredReply | undefined> {
      const query = queries.selectFrom("replies").selectAll().where("id", "=", id);
      const row = await query.executeTakeFirst();
      return row && present(row);
    },

    async put(reply: StoredReply): Promise<void> {
      const row = asRow(reply);
      await queries
        .insertInto("replies")
        .values(row)
        .onConflict((conflict) => conflict.column("id").doUpdateSet(row))
        .execute();
    },
  };
}
