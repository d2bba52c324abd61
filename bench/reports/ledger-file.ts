import { SqliteConnection } from "../../src/store/sqlite/connection/connection.ts";
import { SqlUsageReports } from "../../src/store/repositories/usage/usage-reports.ts";
import { SqlUsageStore } from "../../src/store/repositories/usage/usage-store.ts";
import { isFaultOfData } from "../../src/store/sqlite/connection/sqlite-trouble.ts";
import { type CallSpan, callOf } from "./usage-calls.ts";

const batchRows = 500;

/** A ledger in a file, with the time that its steps block the process. */
export class LedgerFile implements AsyncDisposable {
  readonly reports: SqlUsageReports;
  readonly #connection: SqliteConnection;
  readonly #store: SqlUsageStore;
  readonly #path: string;
  #longestStepMs = 0;

  constructor(path: string) {
    this.#path = path;
    this.#connection = new SqliteConnection({ path, busyTimeoutMs: 10 });
    this.#store = new SqlUsageStore(this.#connection, { isFaultOfData });
    this.reports = new SqlUsageReports({
      read: (work) =>
        this.#connection.read(async (queries) => {
          // It never waits, so all of its time blocks the process.
          const startedAt = performance.now();
          try {
            return await work(queries);
          } finally {
            this.#longestStepMs = Math.max(this.#longestStepMs, performance.now() - startedAt);
          }
        }),
    });
  }

  get megabytes(): number {
    return Bun.file(this.#path).size / 1e6;
  }

  /** The longest step of reports since the last call, in milliseconds. */
  takeLongestStepMs(): number {
    const longest = this.#longestStepMs;
    this.#longestStepMs = 0;
    return longest;
  }

  /** Inserts calls as the gateway does; the CPU time of a row, in microseconds. */
  async fill(span: CallSpan, signal: AbortSignal): Promise<number> {
    let microseconds = 0;
    for (let first = 0; first < span.count; first += batchRows) {
      signal.throwIfAborted();
      const rows = Math.min(batchRows, span.count - first);
      const batch = Array.from({ length: rows }, (_, index) => callOf(first + index, span));
      const before = process.cpuUsage();
      await this.#store.insert(batch);
      const { user, system } = process.cpuUsage(before);
      microseconds += user + system;
    }
    return microseconds / span.count;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#connection.close();
  }
}
