import type { SelectQueryBuilder } from "kysely";
import { sizeOfReply, type KeptReply, type ReplyStore } from "../store.ts";
import type { SqlConnection } from "./connection.ts";
import { isErased } from "./control/accounts.ts";
import { present } from "./row.ts";
import type { Queries, Tables } from "./tables.ts";

/** Rows removed in one transaction, few enough that others do not wait long. */
const removedAtOnce = 200;

/** Replayable answers to calls, in a database. */
export class SqlReplyStore implements ReplyStore {
  readonly #connection: Pick<SqlConnection, "read" | "change">;

  constructor(connection: Pick<SqlConnection, "read" | "change">) {
    this.#connection = connection;
  }

  find(id: string): Promise<KeptReply | undefined> {
    return this.#connection.read(async (queries) => {
      const row = await queries
        .selectFrom("callReplies")
        .select(["id", "accountId", "requestDigest", "keptAt", "body"])
        .where("id", "=", id)
        .executeTakeFirst();
      return row && present(row);
    });
  }

  async put(reply: KeptReply, limitBytes: number): Promise<number> {
    let removed = 0;
    let turn: Turn;
    do {
      // In batches, because a large reply may evict thousands of small ones.
      turn = await this.#connection.change((queries) => putIfRoom(queries, reply, limitBytes));
      removed += turn.removed;
    } while (!turn.isDone);
    return removed;
  }

  prune(before: number, limit: number): Promise<number> {
    return this.#connection.change(async (queries) => {
      const replies = queries.selectFrom("callReplies").select("id");
      const removed = await remove(queries, replies.where("keptAt", "<", before).limit(limit));
      if (removed === limit) return removed;
      const accounts = queries.selectFrom("erasedAccounts").select("id");
      const erased = replies.where("accountId", "in", accounts).limit(limit - removed);
      return removed + (await remove(queries, erased));
    });
  }
}

async function remove(
  queries: Queries,
  replies: SelectQueryBuilder<Tables, "callReplies", { id: string }>,
): Promise<number> {
  const removal = queries.deleteFrom("callReplies").where("id", "in", replies);
  return Number((await removal.executeTakeFirst()).numDeletedRows);
}

async function removeOne(queries: Queries, { id }: { readonly id: string }): Promise<void> {
  await queries.deleteFrom("callReplies").where("id", "=", id).execute();
}

interface Turn {
  /** False when more replies must be evicted first. */
  readonly isDone: boolean;
  readonly removed: number;
}

async function putIfRoom(queries: Queries, reply: KeptReply, limitBytes: number): Promise<Turn> {
  if (await isErased(queries, reply.accountId)) return { isDone: true, removed: 0 };
  const { id, accountId, requestDigest, keptAt, body = null } = reply;
  const bytes = sizeOfReply(reply);
  const stored = await queries
    .selectFrom("callReplies")
    .select("bytes")
    .where("id", "=", id)
    .executeTakeFirst();
  const sum = await queries.selectFrom("callRepliesSum").select("bytes").executeTakeFirst();
  const addedBytes = bytes - (stored?.bytes ?? 0);
  const excess = (sum?.bytes ?? 0) + addedBytes - limitBytes;
  const turn = await makeRoom(queries, { excess, reply, addedBytes });
  if (!turn.isDone) return turn;
  await removeOne(queries, reply);
  const row = { id, accountId, requestDigest, keptAt, bytes, body };
  await queries.insertInto("callReplies").values(row).execute();
  return turn;
}

interface RoomRequest {
  readonly excess: number;
  /** The new reply, which adds `addedBytes` to its account. */
  readonly reply: KeptReply;
  readonly addedBytes: number;
}

/** Removes as much as needed, at most one batch; done when that was enough or nothing is left. */
async function makeRoom(queries: Queries, request: RoomRequest): Promise<Turn> {
  let missing = request.excess;
  let removed = 0;
  while (missing > 0) {
    if (removed === removedAtOnce) return { isDone: false, removed };
    const oldest = await oldestOfLargest(queries, request);
    if (oldest === undefined) break;
    await removeOne(queries, oldest);
    missing -= oldest.bytes;
    removed += 1;
  }
  return { isDone: true, removed };
}

interface StoredReply {
  readonly id: string;
  readonly bytes: number;
}

/**
 * The oldest reply of the account that would have most, or of another if it has only the new one.
 */
async function oldestOfLargest(
  queries: Queries,
  { reply, addedBytes }: RoomRequest,
): Promise<StoredReply | undefined> {
  const { id, accountId } = reply;
  const own = await oldestOf(queries, accountId, id);
  const shares = queries.selectFrom("callReplyShares").select(["accountId", "bytes"]);
  const others = shares.where("accountId", "<>", accountId).orderBy("bytes", "desc");
  const other = await others.limit(1).executeTakeFirst();
  if (other === undefined) return own;
  const share = await shares.where("accountId", "=", accountId).executeTakeFirst();
  const ownBytes = (share?.bytes ?? 0) + addedBytes;
  if (own !== undefined && ownBytes >= other.bytes) return own;
  return oldestOf(queries, other.accountId, id);
}

function oldestOf(
  queries: Queries,
  accountId: string,
  keptId: string,
): Promise<StoredReply | undefined> {
  return queries
    .selectFrom("callReplies")
    .select(["id", "bytes"])
    .where("accountId", "=", accountId)
    .where("id", "<>", keptId)
    .orderBy("keptAt")
    .limit(1)
    .executeTakeFirst();
}
