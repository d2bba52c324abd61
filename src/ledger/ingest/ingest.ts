import {
  appendFileSync,
  closeSync,
  existsSync,
  fdatasyncSync,
  fstatSync,
  ftruncateSync,
  mkdirSync,
  openSync,
} from "node:fs";
import { join } from "node:path";
import type { Clock } from "../../domain/clock.ts";
import type { UsageRecord } from "../../domain/usage/usage.ts";
import { wait } from "../../domain/waiting/wait.ts";
import { RefusedRows } from "../../store/errors.ts";
import type { UsageStore } from "../../store/store.ts";
import { listProcessFolders } from "../spool/process-folder.ts";
import { systemFiles, type SpoolFiles } from "../spool/spool-files.ts";
import type { Progress } from "../spool/spool.ts";
import { type PoisonRow, storeRows } from "./store-rows.ts";
import { FolderReader, type FolderEvents } from "./folder-reader.ts";

export interface IngestOptions {
  /** Folder of the spools of all processes; created if missing. Its caller sees to it that no
   * other process ingests it. */
  readonly root: string;
  readonly store: UsageStore;
  readonly settings: IngestSettings;
  readonly clock: Clock;
  readonly on: IngestEvents;
  /** Replaced in tests to make the disk fail. */
  readonly files?: SpoolFiles | undefined;
}

export interface IngestSettings {
  readonly batchRows: number;
  readonly flushIntervalMs: number;
  readonly sync: "none" | "group";
}

export interface IngestEvents extends FolderEvents {
  /** The database did not accept a batch, or a file could not be opened; it is retried. */
  writeFailed(error: unknown): void;
  /** Called at the first success after a failure. */
  written(): void;
  deadLettered(callId: string, error: unknown): void;
}

/** Longest pause between two attempts while the database fails. */
const longestPauseMs = 5_000;
/** A row is at fault when it failed alone in as many passes for an unknown reason. */
const unexplainedFailures = 5;
/** Records of any kind read in one step, so that a step stays short. */
const recordsAtOnce = 1_000;
/** Most rows stored by the pass at the end; a longer backlog is left to the next start. */
const rowsAtEnd = 100_000;

/**
 * Stores the calls that processes have written to their spools. It keeps no state of its own:
 * after a crash it reads the files again, and the database ignores rows it already has.
 */
export class Ingest {
  readonly #options: IngestOptions;
  /** Folders by path. */
  readonly #folders = new Map<string, FolderReader>();
  /** Folders that were kept after everything in them was stored. */
  readonly #finished = new Set<string>();
  readonly #stopping = new AbortController();
  /** The batch: ended calls that were read and are not stored yet. */
  #rows: UsageRecord[] = [];
  #cancelTimer: (() => void) | undefined;
  #passing: Promise<Error | undefined> | undefined;
  #isStarted = false;
  /** How often the store has failed in a row. */
  #failures = 0;
  /** In how many of these passes a row failed alone, for an unknown reason, by id. */
  readonly #suspicions = new Map<string, number>();
  #hasFailed = false;
  /** Why a file could not be opened in this pass. */
  #unreadable: Error | undefined;

  /** Throws when the folder is unusable. */
  constructor(options: IngestOptions) {
    this.#options = options;
    mkdirSync(options.root, { recursive: true, mode: 0o700 });
    this.#look();
  }

  /** Whether rows of a process that ended are still being stored. */
  get isReplaying(): boolean {
    return [...this.#folders.values()].some((folder) => folder.isReplaying);
  }

  /** Whether calls of processes that ended may not be stored yet. */
  get isBehind(): boolean {
    return [...this.#folders.values()].some((folder) => folder.isBehind);
  }

  /** Size of the files of processes that ended. */
  get leftBytes(): number {
    return [...this.#folders.values()].reduce((sum, { leftBytes }) => sum + leftBytes, 0);
  }

  /** How far a process's folder is stored. */
  progressOf(path: string | undefined): Progress {
    const folder = path === undefined ? undefined : this.#folders.get(path);
    return folder?.progress ?? { segment: 0, closes: 0 };
  }

  /** Begins by storing what is there, because limits and reports count only stored rows. */
  start(): void {
    this.#isStarted = true;
    void this.#pass();
  }

  /** Stores everything written before. Rejects as soon as the store fails. */
  async flush(): Promise<void> {
    await this.#passing;
    const failure = await this.#pass();
    if (failure !== undefined) throw failure;
  }

  /**
   * Stops. If it was started, the store works and the backlog is small, stores what is there first.
   */
  async stop(): Promise<void> {
    if (this.#stopping.signal.aborted) return;
    const wasStarted = this.#isStarted;
    this.#stopping.abort();
    this.#isStarted = false;
    this.#cancelTimer?.();
    await this.#passing;
    // A start that was refused must not change anything.
    if (wasStarted) await this.#pass();
    for (const folder of this.#folders.values()) folder.abandon();
  }

  #look(): void {
    const { root, files = systemFiles, on, settings } = this.#options;
    const { sync } = settings;
    for (const path of listProcessFolders(root)) {
      if (this.#folders.has(path) || this.#finished.has(path)) continue;
      this.#folders.set(path, new FolderReader({ path, sync, files, on }));
    }
    for (const folder of this.#folders.values()) folder.look();
  }

  #schedule(): void {
    this.#cancelTimer?.();
    if (!this.#isStarted) return;
    const { clock, settings } = this.#options;
    const { flushIntervalMs } = settings;
    const longerMs = Math.min(longestPauseMs, flushIntervalMs * 2 ** Math.min(this.#failures, 10));
    const pauseMs = this.#failures === 0 ? flushIntervalMs : longerMs;
    this.#cancelTimer = clock.schedule(() => void this.#pass(), pauseMs);
  }

  /** Never rejects; resolves to the failure, if any. */
  #pass(): Promise<Error | undefined> {
    this.#passing ??= this.#tryAll().finally(() => {
      this.#passing = undefined;
      this.#schedule();
    });
    return this.#passing;
  }

  async #tryAll(): Promise<Error | undefined> {
    const { on } = this.#options;
    let message = "the usage store refuses the rows";
    try {
      await this.#storeAll();
      message = "the spool cannot be read";
      if (this.#unreadable !== undefined) throw this.#unreadable;
    } catch (cause) {
      this.#hasFailed = true;
      on.writeFailed(cause);
      return new Error(message, { cause });
    }
    if (this.#hasFailed) on.written();
    this.#hasFailed = false;
    return undefined;
  }

  async #storeAll(): Promise<void> {
    this.#unreadable = undefined;
    this.#look();
    let stored = 0;
    for (let hasMore = true; hasMore;) {
      hasMore = false;
      for (const folder of this.#folders.values()) {
        if (!this.#read(folder)) continue;
        hasMore = true;
        const isFull = this.#rows.length >= this.#options.settings.batchRows;
        if (isFull) stored += await this.#storeBatch();
        // Lets the process do other work.
        await wait(0, this.#stopping.signal, this.#options.clock);
      }
      if (this.#stopping.signal.aborted && stored >= rowsAtEnd) break;
      // A process may end while another one writes faster than rows are stored.
      if (hasMore) this.#look();
    }
    await this.#storeBatch();
  }

  /** A folder with an unreadable file does not delay the others. */
  #read(folder: FolderReader): boolean {
    try {
      const { batchRows: rows } = this.#options.settings;
      return folder.read(this.#rows, { rows, records: recordsAtOnce });
    } catch (error) {
      this.#unreadable = error instanceof Error ? error : new Error(String(error));
      return false;
    }
  }

  async #storeBatch(): Promise<number> {
    const { length } = this.#rows;
    if (length > 0) await this.#storeRows();
    this.#rows = [];
    for (const [path, folder] of this.#folders) {
      await folder.stored();
      if (!folder.isFinished) continue;
      this.#folders.delete(path);
      if (existsSync(path)) this.#finished.add(path);
    }
    return length;
  }

  /** Throws when they must be stored again. Rows that the database never takes are put aside. */
  async #storeRows(): Promise<void> {
    const { store, root, clock, on } = this.#options;
    this.#failures += 1;
    const poison = await storeRows(this.#rows, store);
    const unproven = poison.filter((row) => !this.#isAtFault(row));
    if (unproven[0] !== undefined) throw unproven[0].error;
    for (const { record, error } of poison) {
      writeDeadLetter(root, { record, error }, clock.now());
      on.deadLettered(record.id, error);
    }
    this.#failures = 0;
    this.#suspicions.clear();
  }

  /** The database may have recovered while rows were tried: each gets further passes. */
  #isAtFault({ record, error }: PoisonRow): boolean {
    if (error instanceof RefusedRows) return true;
    const failures = (this.#suspicions.get(record.id) ?? 0) + 1;
    this.#suspicions.set(record.id, failures);
    return failures >= unexplainedFailures;
  }
}

/**
 * Appends a row to `dead-letter.ndjson` for the operator. Once this returns the row is on disk;
 * throws otherwise.
 */
function writeDeadLetter(folder: string, { record, error }: PoisonRow, at: number): void {
  const reason = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  const line = JSON.stringify({ at: new Date(at).toISOString(), reason, record });
  const file = openSync(join(folder, "dead-letter.ndjson"), "a", 0o600);
  const { size } = fstatSync(file);
  try {
    appendFileSync(file, `${line}\n`);
    fdatasyncSync(file);
  } catch (failure) {
    ftruncateSync(file, size);
    throw failure;
  } finally {
    closeSync(file);
  }
}
