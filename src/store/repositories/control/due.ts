import { sql } from "kysely";
import type { Due, DueQuestion, OpenRotation } from "../../control-store.ts";
import type { Queries } from "../tables.ts";
import { unindexed } from "../entity-table.ts";

/** What ends within a time, the next first. */
export function dueIn(queries: Queries) {
  return {
    /** Keys that expire. */
    async keysDue({ now, before, limit, accountId }: DueQuestion): Promise<readonly Due[]> {
      const { rows } = await sql<Due>`
        select keys.id, applications.name, keys.expires_at as at
        from keys cross join applications
        where keys.expires_at > ${now} and keys.expires_at < ${before} and keys.revoked_at is null
          and applications.id = keys.application_id ${ofAccount(accountId)}
        order by keys.expires_at limit ${limit}`.execute(queries);
      return rows;
    },

    /** Management tokens that expire, of one user or of all. */
    async tokensDue({ now, before, limit }: DueQuestion, userId?: string): Promise<readonly Due[]> {
      const { rows } = await sql<Due>`
        select id, name, expires_at as at from management_tokens
        where expires_at > ${now} and expires_at < ${before} and revoked_at is null
          ${userId === undefined ? sql`` : sql`and ${unindexed("userId")} = ${userId}`}
        order by expires_at limit ${limit}`.execute(queries);
      return rows;
    },

    /** The previous secrets of rotations, which end. */
    async rotationsDue({
      now,
      before,
      limit,
      accountId,
    }: DueQuestion): Promise<readonly OpenRotation[]> {
      const { rows } = await sql<OpenRotation>`
        select keys.id, applications.name, secrets.expires_at as at, secrets.last_used_at
        from secrets cross join keys cross join applications
        where secrets.expires_at > ${now} and secrets.expires_at < ${before}
          and keys.id = secrets.key_id and keys.revoked_at is null
          and applications.id = keys.application_id ${ofAccount(accountId)}
          and exists (
            select 1 from secrets as newer where newer.key_id = secrets.key_id
            and (newer.expires_at is null or newer.expires_at > secrets.expires_at))
        order by secrets.expires_at limit ${limit}`.execute(queries);
      return rows;
    },
  };
}

function ofAccount(accountId: string | undefined) {
  return accountId === undefined ? sql`` : sql`and ${unindexed("keys.accountId")} = ${accountId}`;
}
