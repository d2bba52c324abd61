import { sql } from "kysely";
import type { Session } from "../../entities.ts";
import { type EntitySpec, EntityTable, equals, scanned } from "../entity-table.ts";
import { present } from "../row.ts";
import type { Queries, Row } from "../tables.ts";

interface SessionFilter {
  readonly userId?: string | undefined;
  /** Only sessions that have not expired at `now` and were used since. */
  readonly open: { readonly now: number; readonly usedSince: number };
}

const spec: EntitySpec<Session, Row<Session>, SessionFilter> = {
  table: "sessions",
  select: (queries) => queries.selectFrom("sessions").selectAll(),
  fixed: [],
  write: (session) => ({ ...session }),
  read: present,
  conditions: ({ userId, open: { now, usedSince } }) => [
    equals("sessions.userId", userId),
    scanned({ holds: sql`expires_at > ${now} and last_seen_at > ${usedSince}` }),
  ],
};

export class Sessions extends EntityTable<Session, Row<Session>, SessionFilter> {
  constructor(queries: Queries) {
    super(spec, queries);
  }

  async seen(id: string, at: number): Promise<void> {
    const update = this.queries.updateTable("sessions").set({ lastSeenAt: at });
    await update.where("id", "=", id).where("lastSeenAt", "<", at).execute();
  }

  async deleteOf(userId: string): Promise<void> {
    await this.queries.deleteFrom("sessions").where("userId", "=", userId).execute();
  }
}
