import { sql } from "kysely";
import { alertsBetween, alertsOfCalls } from "../budgets/alerts.ts";
import type { BudgetAlert, CallBatch, StoredCalls, StoredCallsRequest } from "../../store.ts";
import type { Queries, SqlConnection, UsageRow } from "../tables.ts";
import type { Peppers } from "../../../domain/keys/peppers.ts";
import type { UsageRecord } from "../../../domain/usage/usage.ts";
import { toRecord } from "./usage-row.ts";
import { type EndUserDigests, endUserDigests } from "../../../domain/keys/pseudonyms.ts";
import { withoutErased } from "./erased-end-users.ts";

/** A cursor in the database, over calls whose transactions run one at a time. */
export class SqlStoredCalls implements StoredCalls {
  readonly #connection: Pick<SqlConnection, "change" | "read">;
  readonly #digestsOf: EndUserDigests;
  #hasBegun = false;

  constructor(connection: Pick<SqlConnection, "change" | "read">, peppers: Peppers) {
    this.#connection = connection;
    this.#digestsOf = endUserDigests(peppers);
  }

  async next(request: StoredCallsRequest): Promise<CallBatch | undefined> {
    if (!this.#hasBegun) await this.#connection.change(begin);
    this.#hasBegun = true;
    // Most of the time there are none, and nothing is written.
    if (!(await this.#connection.read(hasMore))) return undefined;
    return this.#connection.change((queries) => take(queries, request));
  }

  alertsOf(callIds: readonly string[]): Promise<readonly BudgetAlert[]> {
    return this.#connection.read((queries) => alertsOfCalls(queries, callIds));
  }

  withoutErased(calls: readonly UsageRecord[]): Promise<readonly UsageRecord[]> {
    return this.#connection.read((queries) => withoutErased(queries, calls, this.#digestsOf));
  }

  confirm(holder: string, { end, repriced }: CallBatch): Promise<void> {
    return this.#connection.change(async (queries) => {
      for (const { run } of repriced) await delivered(queries).where("run", "=", run).execute();
      const update = queries.updateTable("eventCursor").set({ position: end });
      await update.where("holder", "=", holder).execute();
    });
  }
}

function delivered(queries: Queries) {
  return queries.updateTable("repriceRuns").set({ isDelivered: 1 });
}

async function begin(queries: Queries): Promise<void> {
  const known = await queries.selectFrom("eventCursor").select("place").executeTakeFirst();
  if (known === undefined) await delivered(queries).execute();
  await sql`
    insert into event_cursor (place, position, holder, held_until)
    select 1, coalesce(max(sequence), 0), '', 0 from usage where true
    on conflict do nothing`.execute(queries);
}

async function hasMore(queries: Queries): Promise<boolean> {
  const { rows } = await sql`
    select 1 from usage where sequence > (select position from event_cursor)
    union all select 1 from reprice_runs where is_delivered = 0 limit 1`.execute(queries);
  return rows.length > 0;
}

async function take(
  queries: Queries,
  { holder, limit, nowMs, untilMs }: StoredCallsRequest,
): Promise<CallBatch | undefined> {
  const taken = await sql<{ position: number }>`
    update event_cursor set holder = ${holder}, held_until = ${untilMs}
    where holder = ${holder} or held_until < ${nowMs} returning position`.execute(queries);
  const [cursor] = taken.rows;
  if (cursor === undefined) return undefined;
  const { rows } = await sql<UsageRow>`
    select * from usage where sequence > ${cursor.position}
    order by sequence limit ${limit}`.execute(queries);
  const waiting = queries.selectFrom("repriceRuns").select(["run", "at", "summary"]);
  const repriced = await waiting.where("isDelivered", "=", 0).orderBy("at").limit(limit).execute();
  if (rows.length + repriced.length === 0) return undefined;
  const end = rows.at(-1)?.sequence ?? cursor.position;
  const alerts = await alertsBetween(queries, { after: cursor.position, until: end });
  return { calls: rows.map(toRecord), alerts, repriced, end };
}
