import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { endOfFrame, headerBytes, magic } from "../spool/frame.ts";

const pieceBytes = 256 * 1024;

/**
 * Reads the frames of one spool file from its start, in constant memory. Damage is skipped up to
 * the next intact frame. A torn write at the end is not damage: it was never acknowledged.
 */
export class SegmentReader {
  readonly #path: string;
  #file: number | undefined;
  #buffer: Buffer = Buffer.alloc(0);
  #offset = 0;
  #position = 0;
  #skippedBytes = 0;

  constructor(path: string) {
    this.#path = path;
  }

  /** Damaged bytes so far. */
  get skippedBytes(): number {
    return this.#skippedBytes;
  }

  /** Bytes before the next frame. */
  get readBytes(): number {
    return this.#position - this.#buffer.length + this.#offset;
  }

  get isOpen(): boolean {
    return this.#file !== undefined;
  }

  /**
   * The text of the next intact frame; undefined at the end. A file that is not sealed may grow: the
   * next call reads what follows its last intact frame again. Throws system errors; opening
   * the file may be retried.
   */
  next(isSealed: boolean): string | undefined {
    const start = this.readBytes;
    let gap: Gap | undefined;
    for (;;) {
      const end = endOfFrame(this.#buffer, this.#offset);
      if (typeof end === "number") {
        const text = this.#buffer.toString("utf8", this.#offset + headerBytes, end);
        this.#skippedBytes += gap?.bytes ?? 0;
        this.#offset = end;
        return text;
      }
      if (end === "incomplete" && this.#fill()) continue;
      if (end === "incomplete" && !isSealed) return this.#returnTo(start);
      if (this.#offset >= this.#buffer.length) {
        if (gap?.isTornWrite === false) this.#skippedBytes += gap.bytes;
        return undefined;
      }
      this.#skipToMagic((gap ??= new Gap()), end === "incomplete");
    }
  }

  close(): void {
    if (this.#file !== undefined) closeSync(this.#file);
    this.#file = undefined;
  }

  #returnTo(position: number): undefined {
    this.#buffer = Buffer.alloc(0);
    this.#offset = 0;
    this.#position = position;
  }

  /** Skips to where the next frame may begin. */
  #skipToMagic(gap: Gap, isIncomplete: boolean): void {
    const buffer = this.#buffer;
    const next = buffer.indexOf(magic, this.#offset + 1);
    // The last bytes may be the start of a magic.
    const last = isIncomplete ? buffer.length : buffer.length - magic.length + 1;
    const end = next === -1 ? Math.max(this.#offset + 1, last) : next;
    gap.add(buffer.subarray(this.#offset, end), isIncomplete);
    this.#offset = end;
  }

  /** Reads more; false at the end of the file. */
  #fill(): boolean {
    const file = (this.#file ??= openSync(this.#path, "r"));
    const rest = this.#buffer.subarray(this.#offset);
    const more = Math.min(fstatSync(file).size - this.#position, pieceBytes);
    if (more <= 0) return false;
    const buffer = Buffer.allocUnsafe(rest.length + more);
    const bytes = readSync(file, buffer, rest.length, more, this.#position);
    if (bytes === 0) return false;
    buffer.set(rest);
    this.#position += bytes;
    this.#buffer = buffer.subarray(0, rest.length + bytes);
    this.#offset = 0;
    return true;
  }
}

/** Bytes that are not a frame, between two frames or after the last. */
class Gap {
  #parts = 0;
  #isIncomplete = false;
  #isZero = true;
  bytes = 0;

  add(bytes: Uint8Array, isIncomplete: boolean): void {
    this.#parts += 1;
    this.#isIncomplete = isIncomplete;
    this.#isZero &&= bytes.every((byte) => byte === 0);
    this.bytes += bytes.length;
  }

  /** At the end of a file: the start of a frame, or allocated space that was never written. */
  get isTornWrite(): boolean {
    return this.#isZero || (this.#parts === 1 && this.#isIncomplete);
  }
}
