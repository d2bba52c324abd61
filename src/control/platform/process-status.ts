export interface ProcessStatus {
  /** Among those of its machine, from 1. */
  readonly number: number;
  /** Whether it has the admin listener and the jobs of its machine. */
  readonly leads: boolean;
  /** Why it cannot serve; undefined when it can. */
  readonly notReady: string | undefined;
  /** Undefined while it starts. */
  readonly facts: ProcessFacts | undefined;
}

/** What a process reports about itself. Undefined: it has no such part. */
export interface ProcessFacts {
  readonly pid: number;
  /** What it lacks although it can serve; undefined: nothing. */
  readonly degraded: string | undefined;
  /** Version of its program, which differs between processes while they are being replaced. */
  readonly version: string;
  readonly startedAt: number;
  readonly residentBytes: number;
  readonly loopDelayLongestMs: number;
  /** What 99 % of the samples of that minute did not exceed. */
  readonly loopDelayP99Ms: number;
  readonly openCalls: number | undefined;
  readonly calls: number | undefined;
  readonly spoolBytes: number | undefined;
  /** Rows of its spool that are not stored yet, as far as it knows. */
  readonly waitingRows: number | undefined;
  /** Lines of its log that could not be written since it started. */
  readonly droppedLogLines: number;
  /** Epoch of the newest key change that it knows. */
  readonly keysGeneration: number;
  /** When it loaded its configuration, in milliseconds since the epoch. */
  readonly configuredAt: number;
}

/** In the text of a lack that ends by itself. */
export const passesByItself = "nothing is to be done";

/** What something lacks, from what its parts lack; each is named once. */
export function joinLacks(lacks: readonly (string | undefined)[]): string | undefined {
  const found = new Set(lacks.filter((lack) => lack !== undefined));
  return found.size === 0 ? undefined : [...found].join("; ");
}
