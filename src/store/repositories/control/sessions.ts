import type { Queries } from "../tables.ts";
import type { Session } from "../../entities.ts";

export class Sessions {
  readonly #queries: Queries;

  constructor(queries: Queries) {
    this.#queries = queries;
  }

  get(id: string): Promise<Session | undefined> {
    const query = this.#queries.selectFrom("sessions").selectAll().where("id", "=", id);
    return query.executeTakeFirst();
  }

  async insert(session: Session): Promise<void> {
    await this.#queries.insertInto("sessions").values(session).execute();
  }

  async seen(id: string, at: number): Promise<void> {
    const update = this.#queries.updateTable("sessions").set({ lastSeenAt: at });
    await update.where("id", "=", id).where("lastSeenAt", "<", at).execute();
  }

  async delete(id: string): Promise<void> {
    await this.#queries.deleteFrom("sessions").where("id", "=", id).execute();
  }

  async deleteOf(userId: string): Promise<void> {
    await this.#queries.deleteFrom("sessions").where("userId", "=", userId).execute();
  }
}
