/** A process of a gateway, as operators see it. */
export interface ProcessStatus {
  readonly role: "control" | "worker" | "single";
  /** Of a worker; counts from 1. */
  readonly number: number | undefined;
  /** Undefined when it can serve. */
  readonly notReady: string | undefined;
  /** Undefined while the process is not there. */
  readonly facts: ProcessFacts | undefined;
}

/** What a process says of itself. Parts that it does not have are undefined. */
export interface ProcessFacts {
  readonly pid: number;
  /** Of the program that it runs: others than its neighbours' while they are replaced. */
  readonly version: string;
  /** When it took its role, in milliseconds since the epoch. */
  readonly startedAt: number;
  readonly residentBytes: number;
  /** The longest delay of the event loop in the last minute. */
  readonly loopDelayLongestMs: number;
  /** What 99 % of the samples of that minute did not exceed. */
  readonly loopDelayP99Ms: number;
  readonly openCalls: number | undefined;
  /** Calls since it started, open ones included. */
  readonly calls: number | undefined;
  /** Size of its spool. */
  readonly spoolBytes: number | undefined;
  /** Rows of its spool that are not stored, as far as it knows. */
  readonly waitingRows: number | undefined;
  /** Epoch of the newest change of keys that it has. */
  readonly keysGeneration: number;
  /** When control took the configuration that the process has; milliseconds since the epoch. */
  readonly configuredAt: number;
}
