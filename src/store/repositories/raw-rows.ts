import { CamelCasePlugin, type KyselyPlugin } from "kysely";
import type { Queries } from "./tables.ts";

const names = new CamelCasePlugin();
const ofQueries: KyselyPlugin = {
  transformQuery: (query) => names.transformQuery(query),
  transformResult: ({ result }) => Promise.resolve(result),
};

/** Gives rows as the database has them: of many rows, to name all columns anew takes long. */
export function withRawRows(queries: Queries): Queries {
  return queries.withoutPlugins().withPlugin(ofQueries);
}
