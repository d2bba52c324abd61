import type { ControlRetention } from "../../control-store.ts";
import type { SqlConnection } from "../connection.ts";
import type { AuditRow } from "../tables.ts";
import { AuditEnds } from "./audit-ends.ts";
import { findProblem } from "./verify-audit.ts";

/**
 * Removes entries only from the beginning, up to the first that is still retained, and only if the
 * chain is intact: times of foreign entries cannot be trusted, and a broken chain is evidence.
 */
export function pruneAudit(
  connection: SqlConnection,
  { audit: before, now }: ControlRetention,
  limit: number,
): Promise<number> {
  const { seals } = connection;
  return connection.change(async (queries) => {
    const ends = new AuditEnds(queries, seals);
    const { anchor: first, head } = await ends.read();
    if (first === undefined || head === undefined) return 0;
    const { plainUntil } = head;
    const oldest = queries.selectFrom("audit").selectAll().orderBy("sequence").limit(limit);
    let last: AuditRow | undefined;
    for (const row of await oldest.execute()) {
      const isSound = findProblem(row, { last: last ?? first, plainUntil, seals }) === undefined;
      if (row.at >= before || !isSound) break;
      last = row;
    }
    if (last === undefined) return 0;
    const { sequence, digest, at } = last;
    const removal = { at, removedAt: now, keptMs: now - before };
    await ends.writeAnchor({ sequence, digest, removal });
    const removed = queries.deleteFrom("audit").where("sequence", "<=", sequence);
    return Number((await removed.executeTakeFirst()).numDeletedRows);
  });
}
