import { accessSync, constants, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { oddKind } from "../domain/chat/file-kind.ts";
import type { OpenedCall, UsageRecord } from "../domain/usage/usage.ts";
import { recordsAtOnce, type ReadBack } from "./read-back.ts";
import { RecordReader } from "./spool/record-reader.ts";
import { segmentNumber } from "./spool/segment.ts";
import { putAway, type SpoolFiles } from "./spool/spool-files.ts";
import type { Delivered } from "./spool/spool-record.ts";

/** What a start found in the spool. */
export interface Replayed {
  /** Accounts of calls that had ended. The database may have had some of them already. */
  readonly closed: number;
  /** Calls that the end of the process interrupted. */
  readonly interrupted: number;
  /** What could not be read; the files it is in are kept aside. */
  readonly skippedBytes: number;
}

/** The files that another process left in the folder of a spool. */
export interface LeftFiles {
  /** Oldest first. */
  readonly paths: readonly string[];
  /** Of a new file, so that it comes after all of them. */
  readonly nextNumber: number;
  readonly bytes: number;
}

export interface LeftFilesEvents {
  /** What is named like a file of the spool is none, or the system does not let it be read. */
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
 * Goes once through the files that another process left. What it holds in memory are the calls
 * that were open at one time. The files stay until all of it is stored: a replay that is cut off
 * begins anew, and the database leaves alone what it knows.
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
      // The next file may not open; what the files before it had must be stored all the same.
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
      // What stays is replayed at the next start, which changes nothing.
    }
  }

  /** Reads one record, which throws when the file cannot be opened, or goes on to the next file. */
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

/** The account of a call whose end nobody lived to see. */
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
