import { SegmentReader } from "./segment-reader.ts";
import { readSpoolRecord, type SpoolRecord } from "./spool-record.ts";

/** Reads the records of one spool file and skips what is unreadable. */
export class RecordReader {
  readonly #reader: SegmentReader;
  readonly #path: string;
  /** Size of the file; undefined until it is open. */
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

  /** Throws when the file cannot be opened; may then be retried. */
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
      // A missing file does not come back: it counts as damage.
      if (!isGone(error)) throw error;
    }
    this.#bytes = Bun.file(this.#path).size;
  }

  /** After a read error the rest of the file counts as damaged; other files are still read. */
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
