import type { Queries } from "../tables.ts";
import type { Session } from "../../entities.ts";

export function sessionsIn(queries: Queries) {
  return {
    get(id: string): Promise<Session | undefined> {
      const query = queries.selectFrom("sessions").selectAll().where("id", "=", id);
      return query.executeTakeFirst();
    },

    async insert(session: Session): Promise<void> {
      await queries.insertInto("sessions").values(session).execute();
    },

    async seen(id: string, at: number): Promise<void> {
      const update = queries.updateTable("sessions").set({ lastSeenAt: at });
      await update.where("id", "=", id).where("lastSeenAt", "<", at).execute();
    },

    async delete(id: string): Promise<void> {
      await queries.deleteFrom("sessions").where("id", "=", id).execute();
    },

    async deleteOf(userId: string): Promise<void> {
      await queries.deleteFrom("sessions").where("userId", "=", userId).execute();
    },
  };
}
