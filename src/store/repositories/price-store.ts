import { sql, type RawBuilder } from "kysely";
import { nextTable, type PricesWanted, type PriceTable } from "../../domain/money/price.ts";
import type { PriceTables } from "../store.ts";
import type { Queries, SqlConnection, Tables } from "./tables.ts";

export interface PriceStore extends PriceTables {
  /** Publishes what targets cost from now on, and returns the table; undefined: nothing differs. */
  publish(wanted: PricesWanted): Promise<PriceTable | undefined>;
}

/** A process needs fewer; of more, the oldest are left out. */
const mostTables = 1_000;

/**
 * The tables of prices, which are never changed. `connection`: of a lane, because a publication reads
 * before it writes. `now`: the time in milliseconds, of one clock for all. All throw
 * `StorageUnavailable`.
 */
export function pricesIn(connection: SqlConnection, now: () => RawBuilder<number>): PriceStore {
  return {
    publish(wanted) {
      return connection.change(async (queries) => {
        const time = await sql<{ now: number }>`select ${now()} as now`.execute(queries);
        const table = nextTable(await tableOf(queries), wanted, time.rows[0]?.now ?? 0);
        if (table !== undefined) {
          const row = { ...table, targets: JSON.stringify(table.targets) };
          await queries.insertInto("priceTables").values(row).execute();
        }
        return table;
      });
    },

    load(since, known) {
      return connection.read(async (queries) => {
        const newest = await queries
          .selectFrom("priceTables")
          .select((eb) => eb.fn.max("version").as("version"))
          .executeTakeFirst();
        if (known !== undefined && Number(newest?.version) === known) return undefined;
        const { rows } = await sql<Tables["priceTables"]>`
          select * from price_tables where version >= coalesce((
            select max(version) from price_tables where valid_from <= ${since}
          ), 0) order by version desc limit ${mostTables}`.execute(queries);
        return rows.map(read);
      });
    },

    versions(limit) {
      return connection.read((queries) =>
        queries
          .selectFrom("priceTables")
          .select(["version", "validFrom"])
          .orderBy("version", "desc")
          .limit(limit)
          .execute(),
      );
    },

    find: (version) => connection.read((queries) => tableOf(queries, version)),
  };
}

/** Of a version, or the newest. */
export async function tableOf(queries: Queries, version?: number): Promise<PriceTable | undefined> {
  const query = queries.selectFrom("priceTables").selectAll().orderBy("version", "desc");
  const found = version === undefined ? query : query.where("version", "=", version);
  const row = await found.limit(1).executeTakeFirst();
  return row && read(row);
}

function read({ version, validFrom, targets }: Tables["priceTables"]): PriceTable {
  return { version, validFrom, targets: readTargets(targets) };
}

/** Only publications write it. */
function readTargets(json: string): PriceTable["targets"];
function readTargets(json: string): unknown {
  const targets: unknown = JSON.parse(json);
  return targets;
}
