import { SegmentReader } from "./segment-reader.ts";
import { readSpoolRecord, type SpoolRecord } from "./spool-record.ts";

/** Reads what one file of the spool says of calls, and steps over what it cannot read. */
export class RecordReader {
  readonly #reader: SegmentReader;
  readonly #bytes: number;
  #unreadableBytes = 0;
  #readBytes = 0;
  #hasFailed = false;

  constructor(path: string) {
    this.#reader = new SegmentReader(path);
    this.#bytes = Bun.file(path).size;
  }

  get skippedBytes(): number {
    const unread = this.#hasFailed ? Math.max(1, this.#bytes - this.#readBytes) : 0;
    return this.#reader.skippedBytes + this.#unreadableBytes + unread;
  }

  next(): SpoolRecord | undefined {
    for (;;) {
      const text = this.#nextText();
      if (text === undefined) return undefined;
      const record = readSpoolRecord(text);
      this.#readBytes += text.length;
      if (record !== undefined) return record;
      this.#unreadableBytes += text.length;
    }
  }

  close(): void {
    this.#reader.close();
  }

  /** A file that the disk gives no more is damaged from there on; the other files still count. */
  #nextText(): string | undefined {
    if (this.#hasFailed) return undefined;
    try {
      return this.#reader.next();
    } catch {
      this.#hasFailed = true;
      return undefined;
    }
  }
}
