import type {
  AuditEntry,
  AuditFields,
  AuditRecord,
  AuditValue,
} from "../../../domain/audit/audit.ts";
import { canonicalJson } from "../../../domain/audit/audit-digest.ts";
import { present } from "../row.ts";
import { storableText } from "../storable-text.ts";
import type { AuditRow } from "../tables.ts";

export function readRecord(row: AuditRow): AuditRecord {
  const { address, requestId, accountId } = present(row);
  return {
    sequence: row.sequence,
    at: row.at,
    actor: { kind: row.actorKind, id: row.actorId ?? undefined, name: row.actorName },
    address,
    requestId,
    action: row.action,
    subject: { type: row.subjectType, id: row.subjectId },
    accountId,
    before: readFields(row.beforeFields),
    after: readFields(row.afterFields),
    previousDigest: row.previousDigest,
    digest: row.digest,
  };
}

function readFields(json: string | null): AuditFields | undefined {
  if (json === null) return undefined;
  try {
    const value: unknown = JSON.parse(json);
    if (isObject(value)) return readObject(value);
  } catch {
    // Treated like JSON that is not an object.
  }
  // Not written by Sluice: lists still show the entry, and its digest no longer matches.
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

export function toRow(record: AuditRecord): Omit<AuditRow, "pepper" | "seal"> {
  return {
    sequence: record.sequence,
    at: record.at,
    actorKind: record.actor.kind,
    actorId: record.actor.id ?? null,
    actorName: record.actor.name,
    address: record.address ?? null,
    requestId: record.requestId ?? null,
    action: record.action,
    subjectType: record.subject.type,
    subjectId: record.subject.id,
    accountId: record.accountId ?? null,
    beforeFields: record.before === undefined ? null : canonicalJson(record.before),
    afterFields: record.after === undefined ? null : canonicalJson(record.after),
    previousDigest: record.previousDigest,
    digest: record.digest,
  };
}

/** Replaces what a database in UTF-8 would refuse or return as something else. */
export function withStorableTexts(entry: AuditEntry): AuditEntry {
  const { actor, subject, address, requestId, action, accountId } = entry;
  const { id, name } = actor;
  return {
    ...entry,
    actor: { ...actor, id: id && storableText(id), name: storableText(name) },
    address: address && storableText(address),
    requestId: requestId && storableText(requestId),
    action: storableText(action),
    subject: { type: storableText(subject.type), id: storableText(subject.id) },
    accountId: accountId && storableText(accountId),
  };
}
