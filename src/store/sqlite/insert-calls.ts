import { CompiledQuery } from "kysely";
import { callColumns } from "../repositories/usage/usage-row.ts";
import type { InsertNew } from "../repositories/usage/usage-store.ts";

/** Rows of one statement: more save little. */
const rowsAtOnce = 20;

/** Binds each value, which costs a third of reading rows from JSON; a statement is no round trip. */
export const insertCalls: InsertNew = async (queries, rows) => {
  const ids: string[] = [];
  for (let at = 0; at < rows.length;) {
    const count = rows.length - at >= rowsAtOnce ? rowsAtOnce : 1;
    const values = rows.slice(at, at + count).flat();
    const statement = count === 1 ? insertOne : insertMany;
    const query = { ...statement, parameters: values };
    const { rows: inserted } = await queries.executeQuery<{ id: string }>(query);
    for (const { id } of inserted) ids.push(id);
    at += count;
  }
  return ids;
};

const insertOne = statementFor(1);
const insertMany = statementFor(rowsAtOnce);

/** Without parameters, because kysely would freeze them, which takes as long as storing them. */
function statementFor(count: number): CompiledQuery {
  const names = Object.keys(callColumns);
  const row = `(${names.map(() => "?").join(", ")})`;
  const rows = Array.from({ length: count }, () => row).join(", ");
  return CompiledQuery.raw(`insert into usage (${names.join(", ")}) values ${rows}
    on conflict (id) do nothing returning id`);
}
