import type { StoredReply } from "../../control-store.ts";
import { asRow, present } from "../row.ts";
import type { Queries } from "../tables.ts";

/** Replayable answers of the admin API. */
export class Replies {
  readonly #queries: Queries;

  constructor(queries: Queries) {
    this.#queries = queries;
  }

  async get(id: string): Promise<StoredReply | undefined> {
    const query = this.#queries.selectFrom("replies").selectAll().where("id", "=", id);
    const row = await query.executeTakeFirst();
    return row && present(row);
  }

  async put(reply: StoredReply): Promise<void> {
    const row = asRow(reply);
    await this.#queries
      .insertInto("replies")
      .values(row)
      .onConflict((conflict) => conflict.column("id").doUpdateSet(row))
      .execute();
  }
}
