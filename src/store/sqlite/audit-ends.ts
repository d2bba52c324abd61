import type { Database } from "bun:sqlite";
import type { AuditLink } from "../../domain/audit/audit-checkpoint.ts";
import { firstDigest } from "../../domain/audit/audit-digest.ts";
import type { AuditSeals } from "../../domain/audit/audit-seals.ts";
import type { AuditEnd, AuditRemoval } from "../control-store.ts";

/** Where the chain ends. */
export interface AuditHead extends AuditLink {
  /** The last entry of a version that made no seals; 0: there is none. */
  readonly plainUntil: number;
}

/** Where the chain begins: the last entry that retention removed. */
export interface AuditAnchor extends AuditLink {
  /** Undefined for what versions without seals removed. */
  readonly removal: AuditRemoval | undefined;
}

/** `undefined`: there is none, or it was not sealed by this installation. */
export interface AuditEnds {
  readonly anchor: AuditAnchor | undefined;
  readonly head: AuditHead | undefined;
}

interface HeadRow extends AuditLink {
  readonly plain_until: number;
  readonly pepper: string;
  readonly seal: string;
}

interface AnchorRow extends AuditLink {
  readonly at: number | null;
  readonly removed_at: number | null;
  readonly kept_ms: number | null;
  readonly pepper: string | null;
  readonly seal: string | null;
}

const noAnchor: AuditAnchor = { sequence: 0, digest: firstDigest, removal: undefined };

export function readHead(database: Database, seals: AuditSeals): AuditHead | undefined {
  const row = headRow(database);
  if (row === null || !seals.isRight("head", headValues(toHead(row)), row)) return undefined;
  return toHead(row);
}

export function writeHead(database: Database, seals: AuditSeals, head: AuditHead): void {
  const { pepper, seal } = seals.make("head", headValues(head));
  database
    .query<unknown, [number, string, number, string, string]>(
      "REPLACE INTO audit_head VALUES (1, ?, ?, ?, ?, ?)",
    )
    .run(head.sequence, head.digest, head.plainUntil, pepper, seal);
}

/** Before anything was removed, the chain begins with its first entry. */
export function readAnchor(database: Database, seals: AuditSeals): AuditAnchor | undefined {
  const row = anchorRow(database);
  if (row === null) return noAnchor;
  const anchor = toAnchor(row);
  const sealed = { pepper: row.pepper ?? "", seal: row.seal ?? "" };
  return seals.isRight("anchor", anchorValues(anchor), sealed) ? anchor : undefined;
}

export function writeAnchor(database: Database, seals: AuditSeals, anchor: AuditAnchor): void {
  const { pepper, seal } = seals.make("anchor", anchorValues(anchor));
  const { at = null, removedAt = null, keptMs = null } = anchor.removal ?? {};
  database.run("DELETE FROM audit_anchor");
  database
    .query<unknown, (number | string | null)[]>(
      `INSERT INTO audit_anchor (sequence, digest, at, removed_at, kept_ms, pepper, seal)
       VALUES (?, ?, ?, ?, ?, ?, ?)`,
    )
    .run(anchor.sequence, anchor.digest, at, removedAt, keptMs, pepper, seal);
}

/** The last entry that is there, whatever the head says. */
export function lastLink(database: Database): AuditLink {
  const row = database
    .query<AuditLink, []>("SELECT sequence, digest FROM audit ORDER BY sequence DESC LIMIT 1")
    .get();
  return row ?? anchorRow(database) ?? noAnchor;
}

/**
 * Takes the chain that is there for the right one. For a database that had no seals before, and
 * where an operator gives up the pepper of before: at any other time it would hide what was changed.
 */
export function sealAudit(database: Database, seals: AuditSeals): void {
  const { sequence, digest } = lastLink(database);
  const row = anchorRow(database);
  if (row !== null) writeAnchor(database, seals, toAnchor(row));
  const plain = database
    .query<{ sequence: number | null }, []>(
      "SELECT max(sequence) AS sequence FROM audit WHERE seal IS NULL",
    )
    .get();
  writeHead(database, seals, { sequence, digest, plainUntil: plain?.sequence ?? 0 });
}

/** Looks at both ends alone: what was changed between them shows when all is read. */
export function findEnd(database: Database, seals: AuditSeals, known?: AuditLink): AuditEnd {
  const head = readHead(database, seals);
  const { sequence, digest } = lastLink(database);
  const isRight = head?.sequence === sequence && head.digest === digest;
  const end = isRight ? { sequence, digest } : undefined;
  return { end, hasKnown: known === undefined || hasLink(database, seals, known) };
}

/** Or had it, until retention removed it. */
function hasLink(database: Database, seals: AuditSeals, known: AuditLink): boolean {
  const anchor = readAnchor(database, seals);
  if (anchor === undefined || known.sequence < anchor.sequence) return anchor !== undefined;
  if (known.sequence === anchor.sequence) return known.digest === anchor.digest;
  const row = database
    .query<AuditLink, [number]>("SELECT sequence, digest FROM audit WHERE sequence = ?")
    .get(known.sequence);
  return row?.digest === known.digest;
}

/** Seals under the first pepper what is rightly sealed under another: nothing needs that one then. */
export function renewSeals(database: Database, seals: AuditSeals): void {
  const head = readHead(database, seals);
  if (head !== undefined && !seals.isFirst(headRow(database)?.pepper ?? "")) {
    writeHead(database, seals, head);
  }
  const row = anchorRow(database);
  const anchor = readAnchor(database, seals);
  if (row === null || anchor === undefined || seals.isFirst(row.pepper ?? "")) return;
  writeAnchor(database, seals, anchor);
}

function headRow(database: Database): HeadRow | null {
  return database.query<HeadRow, []>("SELECT * FROM audit_head").get();
}

function anchorRow(database: Database): AnchorRow | null {
  return database
    .query<AnchorRow, []>("SELECT * FROM audit_anchor ORDER BY sequence DESC LIMIT 1")
    .get();
}

function toHead({ sequence, digest, plain_until: plainUntil }: HeadRow): AuditHead {
  return { sequence, digest, plainUntil };
}

function toAnchor(row: AnchorRow): AuditAnchor {
  const { sequence, digest, at, removed_at: removedAt, kept_ms: keptMs } = row;
  const isKnown = at !== null && removedAt !== null && keptMs !== null;
  return { sequence, digest, removal: isKnown ? { at, removedAt, keptMs } : undefined };
}

function headValues({ sequence, digest, plainUntil }: AuditHead): readonly (string | number)[] {
  return [sequence, digest, plainUntil];
}

function anchorValues({ sequence, digest, removal }: AuditAnchor): readonly (string | number)[] {
  const times = removal === undefined ? [] : [removal.at, removal.removedAt, removal.keptMs];
  return [sequence, digest, ...times];
}
