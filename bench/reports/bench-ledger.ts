import { systemClock } from "../../src/domain/clock.ts";
import type { SqlConnection } from "../../src/store/repositories/tables.ts";
import { SqlUsageReports } from "../../src/store/repositories/usage/usage-reports.ts";
import type { UsageStore } from "../../src/store/store.ts";
import { openStores as openServer } from "../../src/store/postgres/open-stores.ts";
import { openStores as openFile } from "../../src/store/sqlite/open-stores.ts";
import { type CallSpan, callOf } from "./usage-calls.ts";
import { testPeppers } from "../../test/support/test-peppers.ts";

/** As many as the leader takes from a spool at once. */
const batchRows = 2_000;

interface LedgerParts {
  readonly connection: Pick<SqlConnection, "read">;
  readonly store: Pick<UsageStore, "insert">;
  readonly close: () => Promise<void>;
}

/** A ledger with generated calls, and the time that single steps of its reports take. */
export class BenchLedger implements AsyncDisposable {
  readonly reports: SqlUsageReports;
  readonly #parts: LedgerParts;
  #longestStepMs = 0;

  constructor(parts: LedgerParts) {
    this.#parts = parts;
    this.reports = new SqlUsageReports({
      read: (work) =>
        parts.connection.read(async (queries) => {
          const startedAt = performance.now();
          try {
            return await work(queries);
          } finally {
            this.#longestStepMs = Math.max(this.#longestStepMs, performance.now() - startedAt);
          }
        }),
    });
  }

  static inFile(path: string): BenchLedger {
    const stores = openFile(path, systemClock, { owner: undefined, peppers: testPeppers() });
    return new BenchLedger({
      connection: stores.connection,
      store: stores.usage,
      close: () => stores.connection.close(),
    });
  }

  static onServer(url: string): BenchLedger {
    const stores = openServer(url, systemClock, { owner: undefined, peppers: testPeppers() });
    return new BenchLedger({
      connection: stores.connection.inLane("usage"),
      store: stores.usage,
      close: () => stores.connection.close(),
    });
  }

  /** The longest step of reports since the last call, in milliseconds. */
  takeLongestStepMs(): number {
    const longest = this.#longestStepMs;
    this.#longestStepMs = 0;
    return longest;
  }

  /** Inserts calls as the gateway does; the CPU time of a row in this process, in microseconds. */
  async fill(span: CallSpan, signal: AbortSignal): Promise<number> {
    let microseconds = 0;
    for (let first = 0; first < span.count; first += batchRows) {
      signal.throwIfAborted();
      const rows = Math.min(batchRows, span.count - first);
      const batch = Array.from({ length: rows }, (_, index) => callOf(first + index, span));
      const before = process.cpuUsage();
      await this.#parts.store.insert(batch);
      const { user, system } = process.cpuUsage(before);
      microseconds += user + system;
    }
    return microseconds / span.count;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#parts.close();
  }
}
