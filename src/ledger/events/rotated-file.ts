import { open, rename, type FileHandle } from "node:fs/promises";
import { dirname } from "node:path";
import type { EventFileSettings } from "../../domain/settings.ts";

const newline = 0x0a;
const readAtOnce = 65_536;

/** Appends events to a file that is renamed when it is large. What it has taken survives a crash. */
export class RotatedFile {
  readonly #settings: EventFileSettings;
  readonly #now: () => number;
  #file: EventFile | undefined;

  constructor(settings: EventFileSettings, now: () => number) {
    this.#settings = settings;
    this.#now = now;
  }

  async append(lines: readonly string[]): Promise<void> {
    const { path, rotateBytes } = this.#settings;
    if (this.#file !== undefined && this.#file.bytes >= rotateBytes) {
      await this.close();
      await rename(path, `${path}.${new Date(this.#now()).toISOString().replaceAll(":", "-")}`);
      await syncFolder(path);
    }
    this.#file ??= await EventFile.open(path);
    await this.#file.append(lines.map((line) => `${line}\n`).join(""));
  }

  async close(): Promise<void> {
    const file = this.#file;
    this.#file = undefined;
    await file?.close();
  }
}

/** A file of one event per line. What `append` has confirmed survives a power cut. */
class EventFile {
  readonly #file: FileHandle;
  #bytes: number;
  /** An append failed, so what is behind the last line is unknown. */
  #isTorn = false;

  private constructor(file: FileHandle, bytes: number) {
    this.#file = file;
    this.#bytes = bytes;
  }

  /** Opens or creates the file; removes a line that was cut by a crash. */
  static async open(path: string): Promise<EventFile> {
    // Created if missing, without truncation.
    await (await open(path, "a", 0o600)).close();
    const file = await open(path, "r+");
    try {
      const bytes = await wholeLines(file);
      await file.truncate(bytes);
      await file.sync();
      await syncFolder(path);
      return new EventFile(file, bytes);
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** `text` is whole lines. If it fails, nothing of it counts. */
  async append(text: string): Promise<void> {
    const bytes = Buffer.from(text);
    if (this.#isTorn) await this.#file.truncate(this.#bytes);
    this.#isTorn = true;
    for (let written = 0; written < bytes.byteLength;) {
      const position = this.#bytes + written;
      const result = await this.#file.write(bytes, written, bytes.byteLength - written, position);
      written += result.bytesWritten;
    }
    await this.#file.datasync();
    this.#isTorn = false;
    this.#bytes += bytes.byteLength;
  }

  close(): Promise<void> {
    return this.#file.close();
  }
}

/** Length of the file up to its last line end. */
async function wholeLines(file: FileHandle): Promise<number> {
  const { size } = await file.stat();
  const buffer = Buffer.alloc(readAtOnce);
  for (let end = size; end > 0;) {
    const start = Math.max(0, end - readAtOnce);
    const { bytesRead } = await file.read(buffer, 0, end - start, start);
    const found = buffer.subarray(0, bytesRead).lastIndexOf(newline);
    if (found !== -1) return start + found + 1;
    end = start;
  }
  return 0;
}

/** Makes a created or renamed file survive a power cut. */
async function syncFolder(path: string): Promise<void> {
  await using folder = await open(dirname(path), "r");
  await folder.sync();
}
