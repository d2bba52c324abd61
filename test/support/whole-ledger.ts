import type { Clock } from "../../src/domain/clock.ts";
import type { UsageStore } from "../../src/store/store.ts";
import { Ingest, type IngestEvents, type IngestSettings } from "../../src/ledger/ingest/ingest.ts";
import { processFolderName } from "../../src/ledger/spool/process-folder.ts";
import type { SpoolFiles } from "../../src/ledger/spool/spool-files.ts";
import type { SpoolEvents, SpoolSettings } from "../../src/ledger/spool/spool.ts";
import { SpoolWriter } from "../../src/ledger/spool/spool-writer.ts";
import type { AtTurnEnd } from "../../src/ledger/spool/turn.ts";

export interface LedgerOptions {
  /** Created if missing; used by one ledger only. */
  readonly folder: string;
  readonly store: UsageStore;
  readonly settings: LedgerFlow;
  readonly clock: Clock;
  readonly on: LedgerEvents;
  /** Replaced in tests to make the disk fail. */
  readonly files?: SpoolFiles;
  /** By default each record is a turn of its own. */
  readonly atTurnEnd?: AtTurnEnd;
}

export interface LedgerFlow extends SpoolSettings, IngestSettings {}

export interface LedgerEvents extends SpoolEvents, IngestEvents {}

const atOnce: AtTurnEnd = (write) => write();

/** The spool of this process and the ingest of all spools, as long as both are in one process. */
export class Ledger {
  /** Records calls. */
  readonly calls: SpoolWriter;
  readonly #ingest: Ingest;

  /** Throws when the folder is unusable or another process has it. */
  constructor(options: LedgerOptions) {
    const { folder: root, store, settings, clock, on, files, atTurnEnd = atOnce } = options;
    const common = { root, settings, clock, on, files };
    this.#ingest = new Ingest({ ...common, store });
    this.calls = new SpoolWriter({
      ...common,
      name: processFolderName(1, clock.now(), process.pid),
      direct: store,
      atTurnEnd,
    });
  }

  /** Rows of this process that are not in the database yet. */
  get waiting(): number {
    return this.calls.countWaiting(this.#ingest.progressOf(this.calls.folder));
  }

  /** Whether rows of an earlier process are still being stored. */
  get isReplaying(): boolean {
    return this.#ingest.isReplaying;
  }

  /** Whether rows of an earlier process may not be stored yet. */
  get isBehind(): boolean {
    return this.#ingest.isBehind;
  }

  /** Starts to store rows, those of an earlier process first. */
  start(): void {
    this.calls.start();
    this.#ingest.start();
  }

  /** Stores all rows. Rejects when the database fails. */
  async flush(): Promise<void> {
    await this.calls.maintain();
    await this.#ingest.flush();
    await this.calls.maintain();
  }

  /** Stores the rows if possible; the rest stays in the spool for the next start. */
  async shutDown(): Promise<void> {
    await this.calls.shutDown();
    await this.#ingest.stop();
  }
}
