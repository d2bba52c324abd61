import type { Database } from "bun:sqlite";
import type {
  AuditEntry,
  AuditFields,
  AuditRecord,
  AuditValue,
} from "../../../domain/audit/audit.ts";
import { auditDigest, canonicalJson } from "../../../domain/audit/audit-digest.ts";
import type { AuditSeals } from "../../../domain/audit/audit-seals.ts";
import type { AuditFilter, Page, PageRequest } from "../../control-store.ts";
import { lastLink, readHead, writeHead } from "../audit-ends.ts";
import { decodeSequence, encodeSequence } from "../cursor.ts";
import type { Scope } from "../connection/scope.ts";
import { type Condition, equals, insertRow, type SqlValue, toPage, whereAll } from "../table.ts";

export interface AuditRow {
  readonly sequence: number;
  readonly at: number;
  readonly actor_kind: AuditEntry["actor"]["kind"];
  readonly actor_id: string | null;
  readonly actor_name: string;
  readonly address: string | null;
  readonly request_id: string | null;
  readonly action: string;
  readonly subject_type: string;
  readonly subject_id: string;
  readonly account_id: string | null;
  readonly before_fields: string | null;
  readonly after_fields: string | null;
  readonly previous_digest: string;
  readonly digest: string;
  /** Mark of the pepper of the seal; both are absent in entries of versions without seals. */
  readonly pepper: string | null;
  readonly seal: string | null;
}

export class AuditTable {
  readonly #scope: Scope;
  readonly #seals: () => AuditSeals;

  constructor(scope: Scope, seals: () => AuditSeals) {
    this.#scope = scope;
    this.#seals = seals;
  }

  list(filter: AuditFilter, page: PageRequest): Promise<Page<AuditRecord>> {
    return this.#scope.run((database) => {
      const { sql, values } = auditListStatement(filter, page);
      const rows = database.query<AuditRow, SqlValue[]>(sql).all(...values);
      return toPage(rows.map(readRecord), page.limit, ({ sequence }) => encodeSequence(sequence));
    });
  }

  append(entry: AuditEntry): Promise<AuditRecord> {
    return this.#scope.run((database) =>
      appendSealed(database, withStorableTexts(entry), this.#seals()),
    );
  }
}

/**
 * Continues from where this installation's chain ended, not from what is there: entries that were cut
 * off, or put behind it, are a break for good. A chain whose end is not known goes on as it is, and its
 * end stays unsealed: what nobody can vouch for must not be sealed.
 */
function appendSealed(database: Database, entry: AuditEntry, seals: AuditSeals): AuditRecord {
  const found = lastLink(database);
  const head = readHead(database, seals);
  const { digest: previousDigest } = head ?? found;
  const sequence = Math.max(found.sequence, head?.sequence ?? 0) + 1;
  const digest = auditDigest(entry, sequence, previousDigest);
  const record = { ...entry, sequence, previousDigest, digest };
  insertRow(database, "audit", {
    ...toValues(record),
    ...seals.make("entry", [sequence, digest]),
  });
  if (head !== undefined) {
    writeHead(database, seals, { sequence, digest, plainUntil: head.plainUntil });
  }
  return record;
}

/** Newest first, and one row more than the page holds. */
export function auditListStatement(filter: AuditFilter, page: PageRequest): Condition {
  const conditions = [
    equals("account_id", filter.accountId),
    equals("actor_id", filter.actorId),
    equals("action", filter.action),
    equals("subject_id", filter.subjectId),
    filter.since === undefined ? undefined : { sql: "at >= ?", values: [filter.since] },
    filter.until === undefined ? undefined : { sql: "at < ?", values: [filter.until] },
    page.after === undefined
      ? undefined
      : { sql: "sequence < ?", values: [decodeSequence(page.after)] },
  ].filter((condition) => condition !== undefined);
  return {
    sql: `SELECT * FROM audit ${whereAll(conditions)} ORDER BY sequence DESC LIMIT ?`,
    values: [...conditions.flatMap(({ values }) => values), page.limit + 1],
  };
}

export function readRecord(row: AuditRow): AuditRecord {
  return {
    sequence: row.sequence,
    at: row.at,
    actor: { kind: row.actor_kind, id: row.actor_id ?? undefined, name: row.actor_name },
    address: row.address ?? undefined,
    requestId: row.request_id ?? undefined,
    action: row.action,
    subject: { type: row.subject_type, id: row.subject_id },
    accountId: row.account_id ?? undefined,
    before: readFields(row.before_fields),
    after: readFields(row.after_fields),
    previousDigest: row.previous_digest,
    digest: row.digest,
  };
}

function readFields(json: string | null): AuditFields | undefined {
  if (json === null) return undefined;
  try {
    const value: unknown = JSON.parse(json);
    if (isObject(value)) return readObject(value);
  } catch {
    // As if it were no object.
  }
  // Somebody else wrote it: lists still show it, and the digest no longer fits.
  return { unreadable: json };
}

function readObject(value: object): AuditFields {
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, readValue(part)]));
}

function readValue(value: unknown): AuditValue {
  if (typeof value === "string" || typeof value === "number" || typeof value === "boolean") {
    return value;
  }
  if (Array.isArray(value)) return value.map(readValue);
  return isObject(value) ? readObject(value) : null;
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function toValues(record: AuditRecord): Readonly<Record<string, SqlValue>> {
  return {
    sequence: record.sequence,
    at: record.at,
    actor_kind: record.actor.kind,
    actor_id: record.actor.id ?? null,
    actor_name: record.actor.name,
    address: record.address ?? null,
    request_id: record.requestId ?? null,
    action: record.action,
    subject_type: record.subject.type,
    subject_id: record.subject.id,
    account_id: record.accountId ?? null,
    before_fields: record.before === undefined ? null : canonicalJson(record.before),
    after_fields: record.after === undefined ? null : canonicalJson(record.after),
    previous_digest: record.previousDigest,
    digest: record.digest,
  };
}

/** SQLite keeps UTF-8: half a surrogate pair would come back as something else. */
function withStorableTexts(entry: AuditEntry): AuditEntry {
  const { actor, subject } = entry;
  return {
    ...entry,
    actor: { ...actor, id: actor.id?.toWellFormed(), name: actor.name.toWellFormed() },
    address: entry.address?.toWellFormed(),
    requestId: entry.requestId?.toWellFormed(),
    action: entry.action.toWellFormed(),
    subject: { type: subject.type.toWellFormed(), id: subject.id.toWellFormed() },
    accountId: entry.accountId?.toWellFormed(),
  };
}
