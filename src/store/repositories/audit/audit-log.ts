import type { AuditEntry, AuditRecord } from "../../../domain/audit/audit.ts";
import { auditDigest } from "../../../domain/audit/audit-digest.ts";
import type { AuditSeals } from "../../../domain/audit/audit-seals.ts";
import type { AuditFilter, Page, PageRequest } from "../../control-store.ts";
import { decodeSequence, encodeSequence } from "../cursor.ts";
import { toPage } from "../entity-table.ts";
import type { Queries } from "../tables.ts";
import { AuditEnds } from "./audit-ends.ts";
import { readRecord, toRow, withStorableTexts } from "./audit-row.ts";

export class AuditLog {
  readonly #queries: Queries;
  readonly #seals: () => AuditSeals;

  constructor(queries: Queries, seals: () => AuditSeals) {
    this.#queries = queries;
    this.#seals = seals;
  }

  /** Newest first. */
  async list(filter: AuditFilter, { limit, after }: PageRequest): Promise<Page<AuditRecord>> {
    const { accountId, actorId, action, subjectId, since, until } = filter;
    const before = after === undefined ? undefined : decodeSequence(after);
    const rows = await this.#queries
      .selectFrom("audit")
      .selectAll()
      .where((eb) =>
        eb.and([
          ...(accountId === undefined ? [] : [eb("accountId", "=", accountId)]),
          ...(actorId === undefined ? [] : [eb("actorId", "=", actorId)]),
          ...(action === undefined ? [] : [eb("action", "=", action)]),
          ...(subjectId === undefined ? [] : [eb("subjectId", "=", subjectId)]),
          ...(since === undefined ? [] : [eb("at", ">=", since)]),
          ...(until === undefined ? [] : [eb("at", "<", until)]),
          ...(before === undefined ? [] : [eb("sequence", "<", before)]),
        ]),
      )
      .orderBy("sequence", "desc")
      .limit(limit + 1)
      .execute();
    return toPage(rows.map(readRecord), limit, ({ sequence }) => encodeSequence(sequence));
  }

  /**
   * Continues from the sealed end, not from the stored entries, so that entries cut off or added
   * after it remain a detectable break. A chain without a valid end continues as it is and stays
   * unsealed.
   */
  async append(entry: AuditEntry): Promise<AuditRecord> {
    const seals = this.#seals();
    const ends = new AuditEnds(this.#queries, seals);
    const stored = withStorableTexts(entry);
    const found = await ends.lastLink();
    const head = await ends.readHead();
    const { digest: previousDigest } = head ?? found;
    const sequence = Math.max(found.sequence, head?.sequence ?? 0) + 1;
    const digest = auditDigest(stored, sequence, previousDigest);
    const record = { ...stored, sequence, previousDigest, digest };
    const row = { ...toRow(record), ...seals.make("entry", [sequence, digest]) };
    await this.#queries.insertInto("audit").values(row).execute();
    if (head !== undefined) {
      await ends.writeHead({ sequence, digest, plainUntil: head.plainUntil });
    }
    return record;
  }
}
