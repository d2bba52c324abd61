import type { Database } from "bun:sqlite";
import { sizeOfReply, type KeptReply, type ReplyStore } from "../store.ts";
import type { SqliteConnection } from "./connection.ts";
import { isErased } from "./tables/account-table.ts";

/** Others wait no longer than it takes to remove so many rows. */
const removedAtOnce = 200;

interface ReplyRow {
  readonly id: string;
  readonly account_id: string;
  readonly request_digest: string;
  readonly kept_at: number;
  readonly body: Uint8Array | null;
}

/** Answers to calls that may be repeated, in SQLite. */
export class SqliteReplyStore implements ReplyStore {
  readonly #connection: Pick<SqliteConnection, "use" | "transact">;

  constructor(connection: Pick<SqliteConnection, "use" | "transact">) {
    this.#connection = connection;
  }

  find(id: string): Promise<KeptReply | undefined> {
    return this.#connection.use((database) => {
      const row = database
        .query<ReplyRow, [string]>("SELECT * FROM call_replies WHERE id = ?")
        .get(id);
      return row === null ? undefined : readReply(row);
    });
  }

  async put(reply: KeptReply, limitBytes: number): Promise<void> {
    let isDone = false;
    while (!isDone) {
      // In turns: room for a large reply may take the removal of thousands of small ones.
      isDone = await this.#change((database) => putIfRoom(database, reply, limitBytes));
    }
  }

  prune(before: number, limit: number): Promise<number> {
    return this.#change((database) => {
      const old = remove(database, "kept_at < ? LIMIT ?", [before, limit]);
      if (old === limit) return old;
      const condition = "account_id IN (SELECT id FROM erased_accounts) LIMIT ?";
      return old + remove(database, condition, [limit - old]);
    });
  }

  #change<Result>(step: (database: Database) => Result): Promise<Result> {
    return this.#connection.transact((database) => new Promise((done) => done(step(database))));
  }
}

function remove(database: Database, condition: string, values: number[]): number {
  // The changes that a statement counts are not those of its triggers.
  return database
    .query<unknown, number[]>(
      `DELETE FROM call_replies WHERE rowid IN (
         SELECT rowid FROM call_replies WHERE ${condition})`,
    )
    .run(...values).changes;
}

/** False when there is no room yet: some of what is oldest is gone then, and more has to go. */
function putIfRoom(database: Database, reply: KeptReply, limitBytes: number): boolean {
  if (isErased(database, reply.accountId)) return true;
  const bytes = sizeOfReply(reply);
  const sum = readSum(database) - bytesOf(database, reply.id);
  if (!makeRoom(database, { excess: sum + bytes - limitBytes, keptId: reply.id })) return false;
  database.query<unknown, [string]>("DELETE FROM call_replies WHERE id = ?").run(reply.id);
  database
    .query<unknown, [string, string, string, number, number, Uint8Array | null]>(
      `INSERT INTO call_replies (id, account_id, request_digest, kept_at, bytes, body)
       VALUES (?, ?, ?, ?, ?, ?)`,
    )
    .run(reply.id, reply.accountId, reply.requestDigest, reply.keptAt, bytes, reply.body ?? null);
  return true;
}

/** Removes a batch of the oldest, no more than it takes; true when it was enough or nothing is left. */
function makeRoom(
  database: Database,
  { excess, keptId }: { readonly excess: number; readonly keptId: string },
): boolean {
  if (excess <= 0) return true;
  const oldest = database
    .query<{ place: number; bytes: number }, [string, number]>(
      "SELECT rowid AS place, bytes FROM call_replies WHERE id <> ? ORDER BY kept_at LIMIT ?",
    )
    .all(keptId, removedAtOnce);
  const removeOne = database.query<unknown, [number]>("DELETE FROM call_replies WHERE rowid = ?");
  let missing = excess;
  for (const { place, bytes } of oldest) {
    if (missing <= 0) break;
    removeOne.run(place);
    missing -= bytes;
  }
  return missing <= 0 || oldest.length < removedAtOnce;
}

function readSum(database: Database): number {
  const row = database.query<{ bytes: number }, []>("SELECT bytes FROM call_replies_sum").get();
  return row?.bytes ?? 0;
}

function bytesOf(database: Database, id: string): number {
  const row = database
    .query<{ bytes: number }, [string]>("SELECT bytes FROM call_replies WHERE id = ?")
    .get(id);
  return row?.bytes ?? 0;
}

function readReply(row: ReplyRow): KeptReply {
  return {
    id: row.id,
    accountId: row.account_id,
    requestDigest: row.request_digest,
    body: row.body ?? undefined,
    keptAt: row.kept_at,
  };
}
