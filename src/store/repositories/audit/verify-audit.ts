import type { AuditLink } from "../../../domain/audit/audit-checkpoint.ts";
import { auditDigest } from "../../../domain/audit/audit-digest.ts";
import type { AuditSeals } from "../../../domain/audit/audit-seals.ts";
import type { AuditExpectation, AuditProblem, AuditVerdict } from "../../control-store.ts";
import type { SqlConnection } from "../connection.ts";
import type { AuditRow, Queries } from "../tables.ts";
import { type AuditAnchor, AuditEnds, type AuditHead, type Ends } from "./audit-ends.ts";
import { readRecord } from "./audit-row.ts";
import { nextTurn } from "../../../domain/waiting/wait.ts";

/** Few enough that a page blocks the event loop for only a few milliseconds. */
const pageRows = 100;

/**
 * Follows the chain from its sealed beginning to its sealed end. Detects entries that were changed,
 * removed, added or swapped, a chain cut at either end, and a rewritten one. An older copy of the
 * whole database is detected only by a digest or checkpoint kept elsewhere, given as `expected`.
 */
export async function verifyAudit(
  connection: SqlConnection,
  signal: AbortSignal,
  expected: AuditExpectation = {},
): Promise<AuditVerdict> {
  const { seals } = connection;
  const search = new Search(expected);
  let last: AuditLink | undefined;
  let entries = 0;
  while (true) {
    signal.throwIfAborted();
    const page = await connection.read((queries) => readPageAfter(queries, last, seals));
    const { rows, ends, after } = page;
    const broken = (problem: AuditProblem): AuditVerdict => {
      const { digest } = last ?? page.lastLink;
      return { isIntact: false, entries, lastDigest: digest, problem, removal: undefined };
    };
    const { anchor, head } = ends;
    const ofEnds = findProblemOfEnds(ends, after, expected.now);
    if (ofEnds !== undefined || anchor === undefined || head === undefined) {
      return broken(ofEnds ?? { sequence: after.sequence, what: "its ends cannot be read" });
    }
    last = after;
    search.look(last);
    for (const row of rows) {
      const what = findProblem(row, { last, plainUntil: head.plainUntil, seals });
      if (what !== undefined) return broken({ sequence: row.sequence, what });
      last = row;
      search.look(row);
      entries += 1;
    }
    if (rows.length < pageRows) {
      const problem = findProblemAtEnd(last, head) ?? search.problem(anchor, last);
      if (problem !== undefined) return broken(problem);
      const { removal } = anchor;
      return { isIntact: true, entries, lastDigest: last.digest, problem, removal };
    }
    await nextTurn();
  }
}

interface AuditPage {
  readonly ends: Ends;
  readonly after: AuditLink;
  readonly rows: readonly AuditRow[];
  /** The last stored entry, for the verdict on a chain that cannot be followed. */
  readonly lastLink: AuditLink;
}

/** Reads ends and entries of one state, because others may write at any time. */
async function readPageAfter(
  queries: Queries,
  last: AuditLink | undefined,
  seals: AuditSeals,
): Promise<AuditPage> {
  const chain = new AuditEnds(queries, seals);
  const ends = await chain.read();
  const lastLink = await chain.lastLink();
  const start = ends.anchor?.sequence ?? 0;
  // Retention may remove entries while the chain is followed.
  const isBehind = last === undefined || last.sequence < start;
  const after = isBehind ? (ends.anchor ?? lastLink) : last;
  const rows = await queries
    .selectFrom("audit")
    .selectAll()
    .where("sequence", ">", after.sequence)
    .orderBy("sequence")
    .limit(pageRows)
    .execute();
  return { ends, after, rows, lastLink };
}

function findProblemOfEnds(
  { anchor, head }: Ends,
  { sequence }: AuditLink,
  now: number | undefined,
): AuditProblem | undefined {
  if (anchor === undefined) {
    return {
      sequence,
      what: "the record of what retention removed was not written by this installation",
    };
  }
  const { removal } = anchor;
  if (removal !== undefined) {
    const { at, removedAt, keptMs } = removal;
    const isEarly = at > removedAt - keptMs || (now !== undefined && at > now - keptMs);
    if (isEarly) {
      const what = "entries up to it were removed before retention allowed it";
      return { sequence: anchor.sequence, what };
    }
  }
  if (head !== undefined) return undefined;
  return {
    sequence,
    what: "the record of the end of the chain is missing, or not this installation's",
  };
}

interface Predecessor {
  readonly last: AuditLink;
  readonly plainUntil: number;
  readonly seals: AuditSeals;
}

/** The problem of an entry as the successor of another; undefined: none. */
export function findProblem(
  row: AuditRow,
  { last, plainUntil, seals }: Predecessor,
): string | undefined {
  const { sequence, previousDigest, digest, pepper, seal } = row;
  if (sequence !== last.sequence + 1) return "entries before it are missing";
  if (previousDigest !== last.digest) return "it does not continue from the entry before it";
  if (digest !== auditDigest(readRecord(row), sequence, previousDigest)) return "it was changed";
  if (pepper === null || seal === null) {
    return sequence > plainUntil ? "it was not written by this installation" : undefined;
  }
  // An entry may be sealed under a pepper that was given up; the sealed end vouches for it.
  if (!seals.canVerify(pepper) || seals.isRight("entry", [sequence, digest], { pepper, seal })) {
    return undefined;
  }
  return "it was not written by this installation";
}

function findProblemAtEnd(last: AuditLink, head: AuditHead): AuditProblem | undefined {
  if (last.sequence < head.sequence) {
    const what = `entries after it are missing: the last one was ${head.sequence}`;
    return { sequence: last.sequence, what };
  }
  if (last.sequence === head.sequence && last.digest === head.digest) return undefined;
  return {
    sequence: last.sequence,
    what: "the end of the chain is not what this installation wrote",
  };
}

/** Looks for the expected digest while the chain is followed. */
class Search {
  readonly #expected: AuditExpectation;
  #isFound: boolean;

  constructor(expected: AuditExpectation) {
    this.#expected = expected;
    this.#isFound = expected.digest === undefined;
  }

  look({ sequence, digest }: AuditLink): void {
    if (digest !== this.#expected.digest) return;
    this.#isFound ||= (this.#expected.sequence ?? sequence) === sequence;
  }

  problem(anchor: AuditAnchor, last: AuditLink): AuditProblem | undefined {
    if (this.#isFound) return undefined;
    const { sequence } = this.#expected;
    if (sequence === undefined) {
      const what = "the chain has no entry with the expected digest";
      return { sequence: last.sequence, what };
    }
    if (sequence < anchor.sequence) {
      return { sequence, what: "the expected entry is older than what retention kept" };
    }
    const what =
      sequence > last.sequence
        ? `the chain ends here, but once had ${sequence} entries`
        : "it is not the expected entry";
    return { sequence: Math.min(sequence, last.sequence), what };
  }
}
