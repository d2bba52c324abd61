import { sql, type RawBuilder, type SelectQueryBuilder } from "kysely";
import {
  doubtMs,
  mostDoubts,
  sizeOfReply,
  type AnsweredClaim,
  type ClaimAnswer,
  type HeldClaim,
  type KeptReply,
  type ReplyStore,
  type WantedClaim,
} from "../store.ts";
import type { Queries, Row, SqlConnection, Tables } from "./tables.ts";
import { isErased } from "./control/accounts.ts";
import { present, rowsOf } from "./row.ts";

/** Rows removed in one transaction, few enough that others do not wait long. */
const removedAtOnce = 200;

/** Longer than any call runs. */
const claimsKeptMs = 7 * 86_400_000;

/** How a database changes claims and replies. */
export interface ReplyConnections {
  /** One change at a time, because the sizes are read before answers are evicted. */
  readonly replies: Pick<SqlConnection, "read" | "change">;
  /** Changes side by side: a claim is decided by its row alone. */
  readonly claims: Pick<SqlConnection, "read" | "change">;
  /** Milliseconds since the epoch, by one clock for all processes. */
  readonly now: () => RawBuilder<number>;
}

/** Claims of calls and their replayable answers, in a database. */
export class SqlReplyStore implements ReplyStore {
  readonly #connections: ReplyConnections;

  constructor(connections: ReplyConnections) {
    this.#connections = connections;
  }

  /** Who waits for another holder only reads. */
  async claim(wanted: WantedClaim): Promise<ClaimAnswer> {
    const { claims, now } = this.#connections;
    return (
      (await claims.read((queries) => look(queries, wanted, now()))) ??
      (await claims.change((queries) => take(queries, wanted, now())))
    );
  }

  async confirm(held: readonly HeldClaim[]): Promise<void> {
    const claims = rowsOf(
      { id: "text", holder: "text" },
      held.map(({ id, holder }) => [id, holder]),
    );
    await this.#connections.claims.change((queries) =>
      sql`update call_claims set doubts = 0
        where doubts > 0 and (id, holder) in (select id, holder from ${claims})`.execute(queries),
    );
  }

  async release(claim: HeldClaim): Promise<void> {
    await this.#connections.claims.change((queries) => endClaim(queries, claim));
  }

  async keep({ reply, holder, limitBytes }: AnsweredClaim): Promise<number> {
    let removed = 0;
    let evicted: number;
    do {
      // In batches, because a large reply may evict thousands of small ones.
      evicted = await this.#connections.replies.change(async (queries) => {
        if (removed === 0) {
          await put(queries, reply);
          await endClaim(queries, { id: reply.id, holder });
        }
        return evict(queries, reply.id, limitBytes);
      });
      removed += evicted;
    } while (evicted === removedAtOnce);
    return removed;
  }

  prune(before: number, limit: number): Promise<number> {
    const { replies: connection, now } = this.#connections;
    return connection.change(async (queries) => {
      await queries
        .deleteFrom("callClaims")
        .where("askedAt", "<", earlier(now(), claimsKeptMs))
        .execute();
      const replies = queries.selectFrom("callReplies").select("id");
      const removed = await remove(queries, replies.where("keptAt", "<", before).limit(limit));
      if (removed === limit) return removed;
      const accounts = queries.selectFrom("erasedAccounts").select("id");
      const erased = replies.where("accountId", "in", accounts).limit(limit - removed);
      return removed + (await remove(queries, erased));
    });
  }
}

/** Undefined: the claim may be free, or a doubt about it counts. */
async function look(
  queries: Queries,
  wanted: WantedClaim,
  now: RawBuilder<number>,
): Promise<ClaimAnswer | undefined> {
  const reply = await findReply(queries, wanted);
  if (reply !== undefined) return { kind: "kept", reply };
  const claim = await claimOf(queries, wanted.id)
    .where("askedAt", ">", earlier(now, doubtMs))
    .executeTakeFirst();
  return claim && runsElsewhere(claim, wanted);
}

function runsElsewhere(
  claim: { readonly requestDigest: string } | undefined,
  { requestDigest }: WantedClaim,
): ClaimAnswer {
  const isEqual = claim === undefined || claim.requestDigest === requestDigest;
  return { kind: isEqual ? "running" : "reused" };
}

async function take(
  queries: Queries,
  wanted: WantedClaim,
  now: RawBuilder<number>,
): Promise<ClaimAnswer> {
  const { id, holder, requestDigest } = wanted;
  const since = earlier(now, doubtMs);
  const taken = await sql`
    insert into call_claims as claim (id, holder, request_digest, doubts, asked_at)
    values (${id}, ${holder}, ${requestDigest}, 0, ${now})
    on conflict (id) do update set holder = excluded.holder, doubts = 0,
      request_digest = excluded.request_digest, asked_at = excluded.asked_at
    where claim.doubts >= ${mostDoubts} and claim.asked_at <= ${since} returning id`.execute(
    queries,
  );
  if (taken.rows.length === 0) {
    // Others may have asked at the same time.
    const doubted = await sql<{ requestDigest: string }>`
      update call_claims set doubts = doubts + 1, asked_at = ${now}
      where id = ${id} and asked_at <= ${since} returning request_digest`.execute(queries);
    const [claim = await claimOf(queries, id).executeTakeFirst()] = doubted.rows;
    return runsElsewhere(claim, wanted);
  }
  // After the claim, so that the answer of its last holder is not missed.
  const reply = await findReply(queries, wanted);
  if (reply === undefined) return { kind: "yours" };
  await endClaim(queries, wanted);
  return { kind: "kept", reply };
}

function claimOf(queries: Queries, id: string) {
  return queries.selectFrom("callClaims").select("requestDigest").where("id", "=", id);
}

function earlier(now: RawBuilder<number>, durationMs: number): RawBuilder<number> {
  return sql<number>`${now} - cast(${durationMs} as bigint)`;
}

async function findReply(
  queries: Queries,
  { id, olderIds, keptAfter }: WantedClaim,
): Promise<KeptReply | undefined> {
  const { rows } = await sql<Row<KeptReply>>`
    select id, account_id, request_digest, kept_at, body from call_replies
    where id in (${sql.join([id, ...olderIds])}) and kept_at > ${keptAfter}
    order by kept_at desc limit 1`.execute(queries);
  return rows[0] && present(rows[0]);
}

async function endClaim(queries: Queries, { id, holder }: HeldClaim): Promise<void> {
  await sql`delete from call_claims where id = ${id} and holder = ${holder}`.execute(queries);
}

/** Returns how many there were. */
async function remove(
  queries: Queries,
  replies: SelectQueryBuilder<Tables, "callReplies", { id: string }>,
): Promise<number> {
  const removed = await queries
    .deleteFrom("callReplies")
    .where("id", "in", replies)
    .returning(["accountId", "bytes"])
    .execute();
  for (const [accountId, rows] of Map.groupBy(removed, (row) => row.accountId)) {
    const bytes = rows.reduce((sum, row) => sum + row.bytes, 0);
    await addToShare(queries, accountId, -bytes);
  }
  if (removed.length > 0) {
    await queries.deleteFrom("callReplyShares").where("bytes", "<=", 0).execute();
  }
  return removed.length;
}

async function addToShare(queries: Queries, accountId: string, bytes: number): Promise<void> {
  await queries
    .insertInto("callReplyShares")
    .values({ accountId, bytes })
    .onConflict((conflict) =>
      conflict
        .column("accountId")
        .doUpdateSet((eb) => ({ bytes: eb("callReplyShares.bytes", "+", bytes) })),
    )
    .execute();
}

async function put(queries: Queries, reply: KeptReply): Promise<void> {
  const { id, accountId, requestDigest, keptAt, body = null } = reply;
  if (await isErased(queries, accountId)) return;
  await remove(queries, queries.selectFrom("callReplies").select("id").where("id", "=", id));
  const row = { id, accountId, requestDigest, keptAt, bytes: sizeOfReply(reply), body };
  await queries.insertInto("callReplies").values(row).execute();
  await addToShare(queries, accountId, row.bytes);
}

/** Removes at most one batch of others, until all fit; returns how many. */
async function evict(queries: Queries, keptId: string, limitBytes: number): Promise<number> {
  for (let removed = 0; removed < removedAtOnce; removed += 1) {
    const { rows } = await sql<{ bytes: number | null }>`
      select sum(bytes) as bytes from call_reply_shares`.execute(queries);
    if ((rows[0]?.bytes ?? 0) <= limitBytes) return removed;
    if (!(await removeOldest(queries, keptId))) return removed;
  }
  return removedAtOnce;
}

/** Removes one of the account that has most, or of another if it has only the new one. */
async function removeOldest(queries: Queries, keptId: string): Promise<boolean> {
  const shares = queries.selectFrom("callReplyShares").select("accountId");
  for (const { accountId } of await shares.orderBy("bytes", "desc").limit(2).execute()) {
    const others = queries.selectFrom("callReplies").select("id").where("id", "<>", keptId);
    const oldest = others.where("accountId", "=", accountId).orderBy("keptAt").limit(1);
    if ((await remove(queries, oldest)) > 0) return true;
  }
  return false;
}
