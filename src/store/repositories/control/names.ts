import { sql } from "kysely";
import type { NamedDimension } from "../../../domain/usage/usage.ts";
import { rowsOf } from "../row.ts";
import type { Queries } from "../tables.ts";

/** Columns of the name, and where they are found. */
const sources = {
  account: sql`accounts.name as name from accounts`,
  application: sql`applications.name as name from applications`,
  key: sql`coalesce(nullif(keys.name, ''), applications.name) as name
    from keys join applications on applications.id = keys.application_id`,
} as const;

/** Names by id, of what exists. A key without a name has that of its application. */
export async function readNames(
  queries: Queries,
  dimension: NamedDimension,
  ids: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const given = rowsOf(
    { given_id: "text" },
    ids.map((id) => [id]),
  );
  const { rows } = await sql<{ id: string; name: string }>`
    select given_id as id, ${sources[dimension]}
    join ${given} on given_id = ${sql.ref(`${dimension}s.id`)}`.execute(queries);
  return new Map(rows.map(({ id, name }) => [id, name]));
}
