import { sql } from "kysely";
import { replyRowBytes } from "../store.ts";
import type { AddedResponse, FoundResponse, ResponseStore, WantedResponses } from "../store.ts";
import { isErased } from "./control/accounts.ts";
import type { Queries, SqlConnection } from "./tables.ts";

/** As the other tables (`schema.ts`). */
export const table = `
  -- Responses that later requests may refer to. Encrypted; the ids are digests.
  CREATE TABLE stored_responses (
    id TEXT NOT NULL PRIMARY KEY,
    account_id TEXT NOT NULL,
    key_id TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    -- The bytes of all responses of the key before it: the limit of a key needs no sum.
    key_start INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    body BLOB NOT NULL,
    input BLOB NOT NULL
  ) STRICT;
  CREATE INDEX stored_responses_by_age ON stored_responses (expires_at);
  CREATE INDEX stored_responses_by_key ON stored_responses (key_id, key_start);
  CREATE INDEX stored_responses_by_account ON stored_responses (account_id);
`;

/** Responses that later requests may refer to, in a database. */
export class SqlResponseStore implements ResponseStore {
  readonly #connection: Pick<SqlConnection, "read" | "change">;

  constructor(connection: Pick<SqlConnection, "read" | "change">) {
    this.#connection = connection;
  }

  async put({ response, limitBytes }: AddedResponse): Promise<void> {
    await this.#connection.change(async (queries) => {
      if (await isErased(queries, response.accountId)) return;
      const { keyId, body, input } = response;
      const bytes = replyRowBytes + body.byteLength + input.byteLength;
      const keyStart = await endOf(queries, keyId);
      await queries
        .deleteFrom("storedResponses")
        .where("keyId", "=", keyId)
        .where("keyStart", "<", keyStart + bytes - limitBytes)
        .execute();
      await queries
        .insertInto("storedResponses")
        .values({ ...response, keyStart, bytes })
        .onConflict((conflict) => conflict.column("id").doNothing())
        .execute();
    });
  }

  find({ ids, accountId, now, withInput }: Parameters<ResponseStore["find"]>[0]) {
    return this.#connection.read(async (queries): Promise<readonly FoundResponse[]> => {
      const found = queries
        .selectFrom("storedResponses")
        .select(["id", "body"])
        .where("id", "in", ids)
        .where("accountId", "=", accountId)
        .where("expiresAt", ">", now);
      return withInput ? found.select("input").execute() : found.execute();
    });
  }

  async remove({ ids, accountId, now }: WantedResponses): Promise<boolean> {
    const removed = await this.#connection.change((queries) =>
      queries
        .deleteFrom("storedResponses")
        .where("id", "in", ids)
        .where("accountId", "=", accountId)
        .returning("expiresAt")
        .execute(),
    );
    return removed.some(({ expiresAt }) => expiresAt > now);
  }

  /**
   * Removes at most `limit` that have expired, or whose account was erased or key revoked; returns
   * how many.
   */
  async prune(now: number, limit: number): Promise<number> {
    return this.#connection.change(async (queries) => {
      let removed = 0;
      const stored = queries.selectFrom("storedResponses").select("id");
      const accounts = queries.selectFrom("erasedAccounts").select("id");
      const liveKeys = queries.selectFrom("keys").select("id").where("revokedAt", "is", null);
      for (const old of [
        stored.where("expiresAt", "<=", now),
        stored.where("accountId", "in", accounts),
        stored.where("keyId", "not in", liveKeys),
      ]) {
        const removal = queries
          .deleteFrom("storedResponses")
          .where("id", "in", old.limit(limit - removed));
        removed += Number((await removal.executeTakeFirst()).numDeletedRows);
        if (removed >= limit) break;
      }
      return removed;
    });
  }
}

/** Where the next response of the key begins. */
async function endOf(queries: Queries, keyId: string): Promise<number> {
  const newest = await queries
    .selectFrom("storedResponses")
    .select(sql<number>`key_start + bytes`.as("end"))
    .where("keyId", "=", keyId)
    .orderBy("keyStart", "desc")
    .limit(1)
    .executeTakeFirst();
  return newest?.end ?? 0;
}
