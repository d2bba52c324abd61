import { SegmentReader } from "./segment-reader.ts";
import { readSpoolRecord, type SpoolRecord } from "./spool-record.ts";

/** Reads what one file of the spool says of calls, and steps over what it cannot read. */
export class RecordReader {
  readonly #reader: SegmentReader;
  readonly #path: string;
  /** Of the file; undefined until it is open. */
  #bytes: number | undefined;
  #unreadableBytes = 0;
  #readBytes = 0;
  #hasFailed = false;

  constructor(path: string) {
    this.#path = path;
    this.#reader = new SegmentReader(path);
  }

  get skippedBytes(): number {
    const unread = this.#hasFailed ? Math.max(1, (this.#bytes ?? 0) - this.#readBytes) : 0;
    return this.#reader.skippedBytes + this.#unreadableBytes + unread;
  }

  /** Throws when the file cannot be opened: nothing is known of it then, and it can be tried again. */
  next(): SpoolRecord | undefined {
    this.#open();
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

  #open(): void {
    if (this.#bytes !== undefined) return;
    try {
      this.#reader.open();
    } catch (error) {
      // What is gone does not come back: that is told as damage.
      if (!isGone(error)) throw error;
    }
    this.#bytes = Bun.file(this.#path).size;
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

function isGone(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ENOENT";
}
