import { statSync } from "node:fs";
import { hasErrorCode } from "../spool/error-code.ts";
import type { SpoolRecord } from "../spool/spool-record.ts";
import { isOfLaterVersion, readFrame, type FrameRecords } from "./frame-records.ts";
import { SegmentReader } from "./segment-reader.ts";

/** Reads the records of one spool file and skips what is unreadable. */
export class RecordReader {
  readonly #reader: SegmentReader;
  readonly #path: string;
  #isOpen = false;
  /** The rest of the last frame. */
  #records: FrameRecords | undefined;
  #unreadableBytes = 0;
  #readBytes = 0;
  #hasFailed = false;
  #needsLaterVersion = false;

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
   * file cannot be opened, which may be retried. At the first record of a later version it always
   * throws; only that version can store the file.
   */
  next(isSealed: boolean): SpoolRecord | undefined {
    this.#open();
    for (;;) {
      if (this.#needsLaterVersion) throw new Error(`${this.#path} is of a later version`);
      const record = this.#records?.next();
      if (record !== undefined) return record;
      this.#unreadableBytes += this.#records?.unreadBytes ?? 0;
      const payload = this.#nextPayload(isSealed);
      this.#records = payload && readFrame(payload);
      if (payload === undefined) return undefined;
      this.#needsLaterVersion = isOfLaterVersion(payload);
      this.#readBytes += payload.length;
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
      if (!hasErrorCode(error, "ENOENT")) throw error;
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
