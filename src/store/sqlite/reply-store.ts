import type { Database } from "bun:sqlite";
import { sizeOfReply, type KeptReply, type ReplyStore } from "../store.ts";
import type { SqliteConnection } from "./connection/connection.ts";
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

  async put(reply: KeptReply, limitBytes: number): Promise<number> {
    let removed = 0;
    let turn: Turn;
    do {
      // In turns: room for a large reply may take the removal of thousands of small ones.
      turn = await this.#change((database) => putIfRoom(database, reply, limitBytes));
      removed += turn.removed;
    } while (!turn.isDone);
    return removed;
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

interface Turn {
  /** False when there is no room yet: more has to go. */
  readonly isDone: boolean;
  readonly removed: number;
}

function putIfRoom(database: Database, reply: KeptReply, limitBytes: number): Turn {
  if (isErased(database, reply.accountId)) return { isDone: true, removed: 0 };
  const bytes = sizeOfReply(reply);
  const addedBytes = bytes - bytesOf(database, reply.id);
  const excess = readSum(database) + addedBytes - limitBytes;
  const turn = makeRoom(database, { excess, reply, addedBytes });
  if (!turn.isDone) return turn;
  database.query<unknown, [string]>("DELETE FROM call_replies WHERE id = ?").run(reply.id);
  database
    .query<unknown, [string, string, string, number, number, Uint8Array | null]>(
      `INSERT INTO call_replies (id, account_id, request_digest, kept_at, bytes, body)
       VALUES (?, ?, ?, ?, ?, ?)`,
    )
    .run(reply.id, reply.accountId, reply.requestDigest, reply.keptAt, bytes, reply.body ?? null);
  return turn;
}

interface RoomRequest {
  readonly excess: number;
  /** What the room is for, and what its account gets by it. */
  readonly reply: KeptReply;
  readonly addedBytes: number;
}

/** Removes no more than it takes, and no more than a batch; done when it was enough or nothing is left. */
function makeRoom(database: Database, request: RoomRequest): Turn {
  let missing = request.excess;
  let removed = 0;
  while (missing > 0) {
    if (removed === removedAtOnce) return { isDone: false, removed };
    const oldest = oldestOfLargest(database, request);
    if (oldest === undefined) break;
    remove(database, "rowid = ?", [oldest.place]);
    missing -= oldest.bytes;
    removed += 1;
  }
  return { isDone: true, removed };
}

interface StoredReply {
  readonly place: number;
  readonly bytes: number;
}

/** Of the account that would have most; of another, when it has nothing but the new reply. */
function oldestOfLargest(
  database: Database,
  { reply, addedBytes }: RoomRequest,
): StoredReply | undefined {
  const { id, accountId } = reply;
  const own = oldestOf(database, accountId, id);
  const other = database
    .query<{ account: string; bytes: number }, [string]>(
      `SELECT account_id AS account, bytes FROM call_reply_shares WHERE account_id <> ?
       ORDER BY bytes DESC LIMIT 1`,
    )
    .get(accountId);
  if (other === null) return own;
  const ownBytes = readShare(database, accountId) + addedBytes;
  if (own !== undefined && ownBytes >= other.bytes) return own;
  return oldestOf(database, other.account, id);
}

function oldestOf(database: Database, account: string, keptId: string): StoredReply | undefined {
  const oldest = database
    .query<StoredReply, [string, string]>(
      `SELECT rowid AS place, bytes FROM call_replies WHERE account_id = ? AND id <> ?
       ORDER BY kept_at LIMIT 1`,
    )
    .get(account, keptId);
  return oldest ?? undefined;
}

function readShare(database: Database, account: string): number {
  const row = database
    .query<{ bytes: number }, [string]>("SELECT bytes FROM call_reply_shares WHERE account_id = ?")
    .get(account);
  return row?.bytes ?? 0;
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
