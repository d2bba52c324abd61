import { sql } from "kysely";
import type { Clock } from "../../domain/clock.ts";
import { openStores as openIn, type StoreOptions } from "../repositories/open-stores.ts";
import { NoticeListener } from "./connection/notices.ts";
import { PostgresConnection, type PostgresOptions } from "./connection/connection.ts";
import { isFaultOfData } from "./connection/postgres-trouble.ts";

/** The clocks of processes differ. */
export const serverTime = sql<number>`(extract(epoch from clock_timestamp()) * 1000)::bigint`;

type Options = StoreOptions & Pick<PostgresOptions, "poolSize">;

/** All stores of a database, on one pool that connects on first use. */
export function openStores(url: string, clock: Clock, options: Options) {
  const { onDropped, peppers, ...ofConnection } = options;
  const connection = new PostgresConnection({ url, clock, ...ofConnection });
  const stores = openIn({
    connection,
    clock,
    isFaultOfData,
    onDropped,
    peppers,
    async keepBudgets(queries) {
      await sql`select value from epochs where name = 'budgets' for share`.execute(queries);
    },
    now: () => serverTime,
    watchKeys: (watcher) => new NoticeListener({ connection: { url }, clock, watcher }),
  });
  return { connection, ...stores };
}
