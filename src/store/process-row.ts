/** What a gateway process tells the others on its database. Times are Unix milliseconds. */
export interface OwnProcessRow {
  /** Of its data directory, host and process id. */
  readonly id: string;
  /** Name of its host. */
  readonly name: string;
  /** Among the processes of its machine, from 1. */
  readonly number: number;
  readonly version: string;
  /** When it started. */
  readonly startedAt: number;
  /** When it loaded its configuration. */
  readonly configuredAt: number;
  /** Equal for equal files; undefined without a file. */
  readonly configDigest: string | undefined;
  /** `memory`, or equal for equal servers of limits. Undefined: not known yet. */
  readonly limitsDigest: string | undefined;
  /** A mark of each of its peppers, the first in front, with commas. Undefined: as above. */
  readonly pepperMarks: string | undefined;
  /** The newest change of keys that its calls see; undefined while none is known. */
  readonly keysEpoch: number | undefined;
  /** Names it in the charges of its calls, as in domain/money/budget.ts; undefined: not known yet. */
  readonly chargesAs: string | undefined;
  /** Whether it stores the calls of its machine, and those of processes that ended are all stored. */
  readonly ingest: "none" | "behind" | "done";
  readonly adminUrl: string;
  /** Why it cannot serve; undefined when it can. */
  readonly notReady: string | undefined;
  /** What it lacks although it can serve; undefined when nothing is missing. */
  readonly degraded: string | undefined;
}

/** A process, as the database knows it. */
export interface ProcessRow extends OwnProcessRow {
  /** Since its last sign, by the clock of the database. */
  readonly silentMs: number;
}

/** What processes on one database must have in common, and who they are. */
export type ComparedRow = Pick<
  ProcessRow,
  "id" | "name" | "number" | "startedAt" | "adminUrl" | "limitsDigest" | "pepperMarks" | "silentMs"
>;
