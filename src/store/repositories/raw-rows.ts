import { CamelCasePlugin, type KyselyPlugin } from "kysely";
import type { Queries } from "./tables.ts";

const names = new CamelCasePlugin();
const ofQueries: KyselyPlugin = {
  transformQuery: (query) => names.transformQuery(query),
  transformResult: ({ result }) => Promise.resolve(result),
};

/** Skips the renaming of columns, which is slow for many rows. */
export function withRawRows(queries: Queries): Queries {
  return queries.withoutPlugins().withPlugin(ofQueries);
}
