import { accessSync, constants, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { oddKind } from "../domain/chat/file-kind.ts";
import type { OpenedCall, UsageRecord } from "../domain/usage/usage.ts";
import { recordsAtOnce, type ReadBack } from "./read-back.ts";
import { RecordReader } from "./spool/record-reader.ts";
import { segmentNumber } from "./spool/segment.ts";
import { putAway, type SpoolFiles } from "./spool/spool-files.ts";
import type { Delivered } from "./spool/spool-record.ts";

/** The calls that a start found in the spool. */
export interface Replayed {
  /** Calls that had ended. The database may already have some of them. */
  readonly closed: number;
  /** Calls that were open when the process ended. */
  readonly interrupted: number;
  /** Unreadable bytes; their files are kept. */
  readonly skippedBytes: number;
}

/** Files that an earlier process left in the spool folder. */
export interface LeftFiles {
  /** Oldest first. */
  readonly paths: readonly string[];
  /** Number of the next file, above all of these. */
  readonly nextNumber: number;
  readonly bytes: number;
}

export interface LeftFilesEvents {
  /** A file named like a spool file is none or cannot be read. */
  passedOver(path: string, reason: string): void;
}

export function findLeftFiles(folder: string, on: LeftFilesEvents): LeftFiles {
  const files = readdirSync(folder).flatMap((name) => {
    const number = segmentNumber(name);
    return number === undefined ? [] : [{ name, number }];
  });
  files.sort((one, other) => one.number - other.number);
  const paths: string[] = [];
  for (const { name } of files) {
    if (!name.endsWith(".spool")) continue;
    const path = join(folder, name);
    const reason = whyUnreadable(path);
    if (reason === undefined) paths.push(path);
    else on.passedOver(path, reason);
  }
  return {
    paths,
    nextNumber: (files.at(-1)?.number ?? 0) + 1,
    bytes: paths.reduce((sum, path) => sum + statSync(path).size, 0),
  };
}

function whyUnreadable(path: string): string | undefined {
  try {
    const odd = oddKind(statSync(path));
    if (odd === undefined) accessSync(path, constants.R_OK);
    return odd;
  } catch (error) {
    return error instanceof Error && "code" in error ? String(error.code) : "unreadable";
  }
}

export interface ReplayOptions {
  readonly paths: readonly string[];
  readonly files: SpoolFiles;
  readonly onDone: (replayed: Replayed) => void;
}

interface ReadFile {
  readonly path: string;
  readonly skippedBytes: number;
}

interface OpenCall {
  readonly call: OpenedCall;
  delivered: Delivered | undefined;
}

/**
 * Reads the files of an earlier process once. Only the calls open at one time are held in memory.
 * The files stay until all rows are stored: an interrupted replay starts over, and the database
 * ignores rows it already has.
 */
export class Replay implements ReadBack {
  readonly #options: ReplayOptions;
  readonly #unread: string[];
  readonly #read: ReadFile[] = [];
  readonly #open = new Map<string, OpenCall>();
  #reader: RecordReader | undefined;
  #closed = 0;
  #interrupted = 0;

  constructor(options: ReplayOptions) {
    this.#options = options;
    this.#unread = [...options.paths];
  }

  next(limit: number): readonly UsageRecord[] | undefined {
    const rows: UsageRecord[] = [];
    for (let records = 0; records < recordsAtOnce && rows.length < limit; records += 1) {
      if (this.#unread.length === 0) return this.#takeInterrupted(rows, limit);
      // The next file may fail to open; the rows read before it must still be stored.
      if (this.#reader === undefined && rows.length > 0) return rows;
      this.#step(this.#unread[0], rows);
    }
    return rows;
  }

  finish(): void {
    let skippedBytes = 0;
    for (const file of this.#read) {
      skippedBytes += file.skippedBytes;
      this.#putAway(file);
    }
    this.#options.onDone({
      closed: this.#closed,
      interrupted: this.#interrupted,
      skippedBytes,
    });
  }

  abandon(): void {
    this.#reader?.close();
  }

  #putAway({ path, skippedBytes }: ReadFile): void {
    try {
      putAway(this.#options.files, path, skippedBytes);
    } catch {
      // The file is replayed at the next start, which changes nothing.
    }
  }

  /** Reads one record or moves on to the next file. Throws when a file cannot be opened. */
  #step(path: string | undefined, rows: UsageRecord[]): void {
    if (path === undefined) return;
    this.#reader ??= new RecordReader(path);
    const record = this.#reader.next();
    switch (record?.kind) {
      case "open":
        this.#open.set(record.call.id, { call: record.call, delivered: undefined });
        return;
      case "checkpoint": {
        const open = this.#open.get(record.id);
        if (open !== undefined) open.delivered = record.delivered;
        return;
      }
      case "close":
        this.#open.delete(record.record.id);
        this.#closed += 1;
        rows.push(record.record);
        return;
      case undefined:
        this.#read.push({ path, skippedBytes: this.#reader.skippedBytes });
        this.#reader.close();
        this.#reader = undefined;
        this.#unread.shift();
    }
  }

  #takeInterrupted(rows: UsageRecord[], limit: number): readonly UsageRecord[] | undefined {
    for (const [id, open] of this.#open) {
      if (rows.length >= limit) return rows;
      this.#open.delete(id);
      this.#interrupted += 1;
      rows.push(interruptedCall(open));
    }
    return rows.length > 0 ? rows : undefined;
  }
}

/** The record of a call that was open when the process ended. */
function interruptedCall({ call, delivered }: OpenCall): UsageRecord {
  const lastSeenAt = delivered?.at ?? call.startedAt;
  return {
    ...call,
    target: undefined,
    outputTokens: delivered?.outputTokens ?? 0,
    cachedInputTokens: 0,
    usageSource: "estimated",
    outcome: "interrupted",
    status: 500,
    code: "gateway_interrupted",
    attempts: 1,
    firstEventMs: undefined,
    durationMs: Math.max(0, lastSeenAt - call.startedAt),
  };
}
