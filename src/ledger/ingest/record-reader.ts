import { statSync } from "node:fs";
import { errorCode } from "../../domain/system-files.ts";
import { readRecord, type SpoolRecord } from "../spool/spool-record.ts";
import { SegmentReader } from "./segment-reader.ts";

/** Reads the records of one spool file and skips what is unreadable. */
export class RecordReader {
  readonly #reader: SegmentReader;
  readonly #path: string;
  #isOpen = false;
  /** The lines of the last frame that are still to be read, the next one last. */
  #lines: string[] = [];
  #unreadableBytes = 0;
  #readBytes = 0;
  #hasFailed = false;

  constructor(path: string) {
    this.#path = path;
    this.#reader = new SegmentReader(path);
  }

  get skippedBytes(): number {
    const bytes = this.#hasFailed
      ? (statSync(this.#path, { throwIfNoEntry: false })?.size ?? 0)
      : 0;
    const unread = this.#hasFailed ? Math.max(1, bytes - this.#readBytes) : 0;
    return this.#reader.skippedBytes + this.#unreadableBytes + unread;
  }

  /**
   * Undefined at the end of a sealed file, or while an unsealed file has no more. Throws when the
   * file cannot be opened, which may be retried.
   */
  next(isSealed: boolean): SpoolRecord | undefined {
    this.#open();
    for (;;) {
      const line = this.#lines.pop();
      if (line === undefined) {
        const payload = this.#nextPayload(isSealed);
        if (payload === undefined) return undefined;
        this.#lines = payload.toString().split("\n").reverse();
        this.#readBytes += payload.length;
      } else if (line !== "") {
        const record = readRecord(line);
        if (record !== undefined) return record;
        this.#unreadableBytes += Buffer.byteLength(line);
      }
    }
  }

  close(): void {
    this.#reader.close();
  }

  #open(): void {
    if (this.#isOpen) return;
    try {
      this.#reader.open();
    } catch (error) {
      // A missing file does not come back, so it counts as damage.
      if (errorCode(error) !== "ENOENT") throw error;
    }
    this.#isOpen = true;
  }

  /** After a read error the rest of a sealed file counts as damaged; other files are still read. */
  #nextPayload(isSealed: boolean): Buffer | undefined {
    if (this.#hasFailed) return undefined;
    try {
      return this.#reader.next(isSealed);
    } catch {
      this.#hasFailed = isSealed;
      return undefined;
    }
  }
}
