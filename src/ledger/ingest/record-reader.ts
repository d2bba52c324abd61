import { statSync } from "node:fs";
import { errorCode } from "../../domain/system-files.ts";
import { readRecord, type SpoolRecord } from "../spool/spool-record.ts";
import { SegmentReader } from "./segment-reader.ts";

/** Reads the records of one spool file and skips what is unreadable. */
export class RecordReader {
  readonly #reader: SegmentReader;
  readonly #path: string;
  /** The lines of the last frame, and where the next one begins. */
  #text = "";
  #at = 0;
  #unreadableBytes = 0;
  #hasFailed = false;

  constructor(path: string) {
    this.#path = path;
    this.#reader = new SegmentReader(path);
  }

  get skippedBytes(): number {
    const known = this.#reader.skippedBytes + this.#unreadableBytes;
    if (!this.#hasFailed) return known;
    const { size } = statSync(this.#path, { throwIfNoEntry: false }) ?? { size: 0 };
    return known + Math.max(1, size - this.#reader.readBytes);
  }

  /**
   * Undefined at the end of a sealed file, or while an unsealed file has no more. Throws when the
   * file cannot be opened, which may be retried.
   */
  next(isSealed: boolean): SpoolRecord | undefined {
    for (;;) {
      if (this.#at >= this.#text.length) {
        const text = this.#nextText(isSealed);
        if (text === undefined) return undefined;
        [this.#text, this.#at] = [text, 0];
      }
      const end = this.#text.indexOf("\n", this.#at);
      const line = this.#text.slice(this.#at, end === -1 ? undefined : end);
      this.#at += line.length + 1;
      if (line === "") continue;
      const record = readRecord(line);
      if (record !== undefined) return record;
      this.#unreadableBytes += Buffer.byteLength(line);
    }
  }

  close(): void {
    this.#reader.close();
  }

  /** After a read error the rest of a sealed file counts as damaged; other files are still read. */
  #nextText(isSealed: boolean): string | undefined {
    if (this.#hasFailed) return undefined;
    try {
      return this.#reader.next(isSealed);
    } catch (error) {
      // A missing file does not come back, so it counts as damage.
      if (!this.#reader.isOpen && errorCode(error) !== "ENOENT") throw error;
      this.#hasFailed = isSealed;
      return undefined;
    }
  }
}
