import type { StoredReply } from "../../control-store.ts";
import { present } from "../row.ts";
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

  async put({
    id,
    requestDigest,
    status,
    body,
    createdAt,
    shownUntil,
  }: StoredReply): Promise<void> {
    const values = { requestDigest, status, body: body ?? null, createdAt, shownUntil };
    await this.#queries
      .insertInto("replies")
      .values({ id, ...values })
      .onConflict((conflict) => conflict.column("id").doUpdateSet(values))
      .execute();
  }
}
