import type { Queries } from "../tables.ts";
import type { CopiedTable } from "./copied-tables.ts";
import { CopyRefused, type CopiedRow } from "./copy-place.ts";
import { batchesOf, positionOf, textOfRow } from "./copy-rows.ts";

/** The content of a table, which is the same in both databases. */
export interface TableSummary {
  readonly table: string;
  readonly rows: number;
  /** SHA-256 of all rows in the order of their keys, in hexadecimal. */
  readonly digest: string;
}

/** Compares a table row by row. Throws `CopyRefused` with the first row that differs. */
export async function compareTable(
  table: CopiedTable,
  { from, to }: { readonly from: Queries; readonly to: Queries },
): Promise<TableSummary> {
  const digest = new Bun.CryptoHasher("sha256");
  const copied = rowsOf(to, table);
  let rows = 0;
  for await (const row of rowsOf(from, table)) {
    const { value: copy, done: isOver } = await copied.next();
    const text = textOfRow(row);
    if (isOver === true || text !== textOfRow(copy)) throw differs(table, row);
    digest.update(`${text}\n`);
    rows += 1;
  }
  const { value: surplus, done: isOver } = await copied.next();
  if (isOver !== true) throw differs(table, surplus);
  return { table: table.name, rows, digest: digest.digest("hex") };
}

async function* rowsOf(queries: Queries, table: CopiedTable): AsyncGenerator<CopiedRow, undefined> {
  for await (const rows of batchesOf(queries, table)) yield* rows;
  return undefined;
}

function differs(table: CopiedTable, row: CopiedRow): CopyRefused {
  return new CopyRefused(
    `the copy differs in ${table.name} at ${JSON.stringify(positionOf(table, row))}. ` +
      "Please stop all gateways of both databases, and copy to a new, empty database.",
  );
}
