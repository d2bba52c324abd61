import { open, rename, type FileHandle } from "node:fs/promises";
import { dirname } from "node:path";
import type { EventFileSettings } from "../../domain/settings.ts";
import { systemFiles } from "../spool/spool-files.ts";

const newline = 0x0a;
const readAtOnce = 65_536;

/** Appends events to a file that is renamed when it is large. What it has taken survives a crash. */
export class RotatedFile {
  readonly #settings: EventFileSettings;
  readonly #now: () => number;
  #file: FileHandle | undefined;
  #bytes = 0;
  /** Ends with the last append: one follows the other. */
  #appending: Promise<unknown> = Promise.resolve();

  constructor(settings: EventFileSettings, now: () => number) {
    this.#settings = settings;
    this.#now = now;
  }

  /** If it fails, nothing of `lines` counts. */
  append(lines: readonly string[]): Promise<void> {
    const appended = this.#appending.then(() => this.#append(lines));
    this.#appending = appended.catch(() => undefined);
    return appended;
  }

  async close(): Promise<void> {
    const file = this.#file;
    this.#file = undefined;
    await file?.close();
  }

  async #append(lines: readonly string[]): Promise<void> {
    const { path, rotateBytes } = this.#settings;
    if (this.#file !== undefined && this.#bytes >= rotateBytes) {
      await this.close();
      await rename(path, `${path}.${new Date(this.#now()).toISOString().replaceAll(":", "-")}`);
      await systemFiles.syncFolder(dirname(path));
    }
    this.#file ??= await this.#open();
    const bytes = Buffer.from(lines.map((line) => `${line}\n`).join(""));
    try {
      await this.#file.appendFile(bytes);
      await this.#file.datasync();
      this.#bytes += bytes.byteLength;
    } catch (error) {
      await this.#file.truncate(this.#bytes).catch(() => undefined);
      await this.close();
      throw error;
    }
  }

  /** Opens or creates the file; removes a line that was cut by a crash. */
  async #open(): Promise<FileHandle> {
    const { path } = this.#settings;
    const file = await open(path, "a+", 0o600);
    try {
      this.#bytes = await wholeLines(file);
      await file.truncate(this.#bytes);
      await file.sync();
      await systemFiles.syncFolder(dirname(path));
      return file;
    } catch (error) {
      await file.close();
      throw error;
    }
  }
}

/** Length of the file up to its last line end; lines are much shorter than what is read. */
async function wholeLines(file: FileHandle): Promise<number> {
  const { size } = await file.stat();
  const start = Math.max(0, size - readAtOnce);
  const { buffer, bytesRead } = await file.read(Buffer.alloc(readAtOnce), { position: start });
  return start + buffer.subarray(0, bytesRead).lastIndexOf(newline) + 1;
}
