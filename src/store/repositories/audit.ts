import { sql } from "kysely";
import {
  auditDigest,
  type AuditEntry,
  type AuditFields,
  type AuditLink,
  type AuditRecord,
  canonicalJson,
  firstDigest,
} from "../audit.ts";
import { isObject } from "../../domain/json-object.ts";
import { nextTurn } from "../../domain/waiting/wait.ts";
import type {
  AuditEnds,
  AuditExpectation,
  AuditFilter,
  AuditProblem,
  AuditVerdict,
  Page,
  PageRequest,
} from "../control-store.ts";
import type { AuditRow, Queries, SqlConnection } from "./tables.ts";
import { decodeCursor, encodeCursor } from "./cursor.ts";
import { toPage } from "./entity-table.ts";
import { asRow, present, storableTexts } from "./row.ts";

/** Few enough that a page blocks the event loop for only a few milliseconds. */
const pageRows = 100;

export function auditIn(queries: Queries) {
  return {
    /** Newest first. */
    async list(filter: AuditFilter, { limit, after }: PageRequest): Promise<Page<AuditRecord>> {
      const { accountId, actorId, action, subjectId, since, until } = filter;
      const before = after === undefined ? undefined : decodeCursor(after).at;
      const range = await rangeOf(queries, filter);
      const rows = await queries
        .selectFrom("audit")
        .selectAll()
        .where((eb) =>
          eb.and([
            ...Object.entries({ accountId, actorId, action, subjectId }).flatMap(
              ([column, value]) => (value === undefined ? [] : [eb(sql.ref(column), "=", value)]),
            ),
            ...(since === undefined ? [] : [eb("at", ">=", since)]),
            ...(until === undefined ? [] : [eb("at", "<", until)]),
            ...(before === undefined ? [] : [eb("sequence", "<", before)]),
            ...(range === undefined ? [] : [eb.between("sequence", range.first, range.last)]),
          ]),
        )
        .orderBy("sequence", "desc")
        .limit(limit + 1)
        .execute();
      return toPage(rows.map(readRecord), limit, ({ sequence }) =>
        encodeCursor({ at: sequence, id: "" }),
      );
    },

    /** Continues from the last entry, which is never removed. */
    async append(entry: AuditEntry): Promise<AuditRecord> {
      const last = await lastLink(queries);
      const { actor, subject } = entry;
      const parts = { actor: storableTexts(actor), subject: storableTexts(subject) };
      const stored = { ...storableTexts(entry), ...parts };
      const sequence = last.sequence + 1;
      const digest = auditDigest(stored, sequence, last.digest);
      const record = { ...stored, sequence, previousDigest: last.digest, digest };
      await queries.insertInto("audit").values(toRow(record)).execute();
      return record;
    },
  };
}

/** The entries of a time, found by an index: a list by sequence would read all that are newer. */
async function rangeOf(queries: Queries, { since, until }: AuditFilter) {
  if (since === undefined && until === undefined) return undefined;
  const range = await queries
    .selectFrom("audit")
    .select((eb) => [eb.fn.min("sequence").as("first"), eb.fn.max("sequence").as("last")])
    .where("at", ">=", since ?? 0)
    .where("at", "<", until ?? Number.MAX_SAFE_INTEGER)
    .executeTakeFirst();
  return { first: range?.first ?? 0, last: range?.last ?? 0 };
}

/** The first and the last entry, and whether the chain has `known`, or had it until retention. */
export async function findAuditEnds(queries: Queries, known?: AuditLink): Promise<AuditEnds> {
  const [oldest] = await rowsAfter(queries, 0, 1);
  const last = await lastLink(queries);
  const first = oldest?.sequence ?? 1;
  if (known === undefined || known.sequence < first) return { first, last, hasKnown: true };
  const [row] = await rowsAfter(queries, known.sequence - 1, 1);
  const hasKnown = row?.sequence === known.sequence && row.digest === known.digest;
  return { first, last, hasKnown };
}

/**
 * Follows the chain from its first kept entry to its last. Detects entries that were changed, removed
 * from the middle, added or swapped. A chain that was cut at an end, rewritten, or restored to an older
 * state is detected only by a digest or checkpoint kept elsewhere, given as `expected`.
 */
export async function verifyAudit(
  connection: SqlConnection,
  signal: AbortSignal,
  expected: AuditExpectation = {},
): Promise<AuditVerdict> {
  let first: AuditVerdict["first"];
  let last: AuditLink | undefined;
  let entries = 0;
  let isFound = expected.digest === undefined;
  const verdict = (problem: AuditProblem | undefined): AuditVerdict => {
    const lastDigest = last?.digest ?? firstDigest;
    return { isIntact: problem === undefined, entries, lastDigest, problem, first };
  };
  while (true) {
    signal.throwIfAborted();
    const after = last?.sequence ?? 0;
    const { rows, oldest } = await connection.read(async (queries) => ({
      rows: await rowsAfter(queries, after, pageRows),
      oldest: (await rowsAfter(queries, 0, 1))[0],
    }));
    // Retention may remove entries while the chain is followed.
    if (oldest !== undefined && oldest.sequence > after) last = undefined;
    for (const row of rows) {
      const what = findProblem(row, last);
      if (what !== undefined) return verdict({ sequence: row.sequence, what });
      first ??= { sequence: row.sequence, at: row.at };
      last = row;
      entries += 1;
      isFound ||=
        row.digest === expected.digest && (expected.sequence ?? row.sequence) === row.sequence;
    }
    if (rows.length < pageRows) break;
    await nextTurn();
  }
  return verdict(isFound ? undefined : describeMissing(expected, first?.sequence ?? 1, last));
}

/**
 * Removes entries only from the beginning, up to the first that is still retained, never the last one,
 * and only while the chain is intact: times of foreign entries cannot be trusted, and a broken chain is
 * evidence. Returns how many it removed.
 */
export function pruneAudit(
  connection: SqlConnection,
  before: number,
  limit: number,
): Promise<number> {
  return connection.change(async (queries) => {
    let last: AuditLink | undefined;
    for (const row of (await rowsAfter(queries, 0, limit + 1)).slice(0, -1)) {
      if (row.at >= before || findProblem(row, last) !== undefined) break;
      last = row;
    }
    if (last === undefined) return 0;
    const removed = queries.deleteFrom("audit").where("sequence", "<=", last.sequence);
    return Number((await removed.executeTakeFirst()).numDeletedRows);
  });
}

/** In the order of the chain. */
function rowsAfter(queries: Queries, sequence: number, limit: number): Promise<AuditRow[]> {
  const query = queries.selectFrom("audit").selectAll().where("sequence", ">", sequence);
  return query.orderBy("sequence").limit(limit).execute();
}

async function lastLink(queries: Queries): Promise<AuditLink> {
  const query = queries.selectFrom("audit").select(["sequence", "digest"]);
  const row = await query.orderBy("sequence", "desc").limit(1).executeTakeFirst();
  return row ?? { sequence: 0, digest: firstDigest };
}

/**
 * The problem of an entry as the successor of another; undefined: none. The entries before the first
 * kept one were removed when their time was over.
 */
function findProblem(row: AuditRow, last: AuditLink | undefined): string | undefined {
  const { sequence, previousDigest, digest } = row;
  if (last !== undefined && sequence !== last.sequence + 1) return "entries before it are missing";
  const expected = last?.digest ?? (sequence === 1 ? firstDigest : previousDigest);
  if (previousDigest !== expected) return "it does not continue from the entry before it";
  return digest === auditDigest(readRecord(row), sequence, previousDigest)
    ? undefined
    : "it was changed";
}

function describeMissing(
  { sequence }: AuditExpectation,
  first: number,
  last: AuditLink | undefined,
): AuditProblem {
  const end = last?.sequence ?? 0;
  if (sequence === undefined) {
    return { sequence: end, what: "the chain has no entry with the expected digest" };
  }
  if (sequence < first) {
    return { sequence, what: "the expected entry is older than what is kept" };
  }
  const what =
    sequence > end
      ? `the chain ends here, but once had ${sequence} entries`
      : "it is not the expected entry";
  return { sequence: Math.min(sequence, end), what };
}

export function readRecord(row: AuditRow): AuditRecord {
  const { actorKind, actorId, actorName, subjectType, subjectId, ...others } = present(row);
  const { beforeFields, afterFields, ...record } = others;
  return {
    ...record,
    actor: { kind: actorKind, id: actorId, name: actorName },
    subject: { type: subjectType, id: subjectId },
    before: readFields(beforeFields),
    after: readFields(afterFields),
  };
}

function readFields(json: string | undefined): AuditFields | undefined {
  if (json === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(json);
    if (isObject(value)) return value;
  } catch {
    // Treated like JSON that is not an object.
  }
  // Not written by Sluice: lists still show the entry, and its digest no longer matches.
  return { unreadable: json };
}

function toRow({ actor, subject, before, after, ...record }: AuditRecord): AuditRow {
  return {
    ...asRow(record),
    actorKind: actor.kind,
    actorId: actor.id ?? null,
    actorName: actor.name,
    subjectType: subject.type,
    subjectId: subject.id,
    beforeFields: before === undefined ? null : canonicalJson(before),
    afterFields: after === undefined ? null : canonicalJson(after),
  };
}
