import { sql, type RawBuilder } from "kysely";
import type { PriceTable } from "../../domain/money/price.ts";
import type { Publication } from "../../domain/money/publication.ts";
import type { PriceTables } from "../store.ts";
import type { Queries, SqlConnection, Tables } from "./tables.ts";

/** Decides in the transaction what to publish: what there is, the last version, and the time. */
export type PlanPrices = (
  tables: readonly PriceTable[],
  lastVersion: number,
  now: number,
) => Publication;

export interface PriceStore extends PriceTables {
  /** Publishes what a plan wants, and returns it. */
  publish(plan: PlanPrices): Promise<Publication>;
}

/** A process needs fewer; of more, the oldest are left out. */
const mostTables = 1_000;

/**
 * The tables of prices, which are never changed, only withdrawn before they begin. `connection`: of a
 * lane, because a publication reads before it writes. `now`: the time in milliseconds, of one clock
 * for all. All throw `StorageUnavailable`.
 */
export function pricesIn(connection: SqlConnection, now: () => RawBuilder<number>): PriceStore {
  return {
    publish(plan) {
      return connection.change(async (queries) => {
        const time = await sql<{ now: number }>`select ${now()} as now`.execute(queries);
        const at = time.rows[0]?.now ?? 0;
        const last = await queries
          .selectFrom("priceTables")
          .select((eb) => eb.fn.max("version").as("version"))
          .executeTakeFirst();
        const publication = plan(await tablesSince(queries, at), Number(last?.version ?? 0), at);
        for (const { targets, ...table } of publication.published) {
          const row = { ...table, targets: JSON.stringify(targets) };
          await queries
            .insertInto("priceTables")
            .values({ ...row, publishedAt: at, withdrawnAt: null })
            .execute();
        }
        for (const version of publication.withdrawn) {
          await queries
            .updateTable("priceTables")
            .set({ withdrawnAt: at })
            .where("version", "=", version)
            .execute();
        }
        return publication;
      });
    },

    load(since, known) {
      return connection.read(async (queries) => {
        const { rows } = await sql<{ state: string }>`
          select coalesce(max(version), 0) || '-' || count(withdrawn_at) as state
          from price_tables`.execute(queries);
        const state = rows[0]?.state ?? "";
        if (state === known) return { state, tables: undefined };
        return { state, tables: await tablesSince(queries, since) };
      });
    },

    versions(limit) {
      return connection.read(async (queries) => {
        const rows = await queries
          .selectFrom("priceTables")
          .select(["version", "validFrom", "publishedAt", "withdrawnAt"])
          .orderBy("version", "desc")
          .limit(limit)
          .execute();
        return rows.map((row) => ({ ...row, withdrawnAt: row.withdrawnAt ?? undefined }));
      });
    },

    find(version) {
      return connection.read(async (queries) => {
        const query = queries.selectFrom("priceTables").selectAll();
        const row = await query.where("version", "=", version).executeTakeFirst();
        return row && tableOf(row);
      });
    },
  };
}

async function tablesSince(queries: Queries, since: number): Promise<readonly PriceTable[]> {
  const { rows } = await sql<Tables["priceTables"]>`
    select * from price_tables where withdrawn_at is null and valid_from >= coalesce((
      select max(valid_from) from price_tables where withdrawn_at is null and valid_from <= ${since}
    ), 0) order by valid_from desc, version desc limit ${mostTables}`.execute(queries);
  return rows.map((row) => tableOf(row));
}

export function tableOf({ version, validFrom, targets }: Tables["priceTables"]): PriceTable {
  return { version, validFrom, targets: readTargets(targets) };
}

/** Only publications write it. */
function readTargets(json: string): PriceTable["targets"];
function readTargets(json: string): unknown {
  const targets: unknown = JSON.parse(json);
  return targets;
}
