import type { Database } from "bun:sqlite";
import type { AuditRecord } from "../../domain/audit.ts";
import { auditDigest } from "../../domain/audit-digest.ts";
import type { AuditVerdict } from "../control-store.ts";
import type { SqliteConnection } from "./connection.ts";
import { anchorOf, type AuditRow, type ChainLink, readRecord } from "./tables/audit-table.ts";
import { nextTurn } from "./usage-turn.ts";

/** Few enough for a page to hold up the event loop for some milliseconds. */
const pageRows = 100;

/**
 * Follows the chain from its beginning. Notices entries that were changed, removed, added or
 * swapped. Whoever can write the file can also cut the end off, or write the whole chain anew: that
 * shows only to somebody who noted `lastDigest` elsewhere.
 */
export async function verifyAudit(
  connection: SqliteConnection,
  signal: AbortSignal,
): Promise<AuditVerdict> {
  let last: ChainLink | undefined;
  let entries = 0;
  while (true) {
    signal.throwIfAborted();
    const page = await connection.use(readPageAfter(last));
    last = page.after;
    for (const record of page.records) {
      const what = findProblem(record, last);
      if (what !== undefined) {
        const problem = { sequence: record.sequence, what };
        return { isIntact: false, entries, lastDigest: last.digest, problem };
      }
      last = record;
      entries += 1;
    }
    if (page.records.length < pageRows) {
      return { isIntact: true, entries, lastDigest: last.digest, problem: undefined };
    }
    await nextTurn();
  }
}

interface AuditPage {
  readonly after: ChainLink;
  readonly records: readonly AuditRecord[];
}

function readPageAfter(last: ChainLink | undefined): (database: Database) => AuditPage {
  return (database) => {
    const anchor = anchorOf(database);
    // Old entries may be removed while the chain is followed.
    const after = last === undefined || last.sequence < anchor.sequence ? anchor : last;
    const rows = database
      .query<AuditRow, [number, number]>(
        "SELECT * FROM audit WHERE sequence > ? ORDER BY sequence LIMIT ?",
      )
      .all(after.sequence, pageRows);
    return { after, records: rows.map(readRecord) };
  };
}

function findProblem(record: AuditRecord, last: ChainLink): string | undefined {
  const { sequence, previousDigest, digest } = record;
  if (sequence !== last.sequence + 1) return `entries before it are missing`;
  if (previousDigest !== last.digest) return "it does not continue from the entry before it";
  if (digest !== auditDigest(record, sequence, previousDigest)) return "it was changed";
  return undefined;
}
