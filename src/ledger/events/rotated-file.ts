import { open, readdir, rename, type FileHandle } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
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

  /** If it fails, nothing of the lines counts. They are read once all before them are in the file. */
  append(read: () => Promise<readonly string[]>): Promise<void> {
    const appended = this.#appending.then(read).then((lines) => this.#append(lines));
    this.#appending = appended.catch(() => undefined);
    return appended;
  }

  /**
   * Writes over each part of the lines, also of files that were renamed, as many bytes. Who reads them
   * finds all lines where they were.
   */
  overwrite(isMeant: (line: string) => boolean, parts: ReadonlyMap<string, string>): Promise<void> {
    const overwritten = this.#appending.then(async () => {
      const { path } = this.#settings;
      const names = await readdir(dirname(path));
      const own = names.filter((name) => `${name}.`.startsWith(`${basename(path)}.`));
      for (const name of own) await overwriteIn(join(dirname(path), name), isMeant, parts);
    });
    this.#appending = overwritten.catch(() => undefined);
    return overwritten;
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

async function overwriteIn(
  path: string,
  isMeant: (line: string) => boolean,
  parts: ReadonlyMap<string, string>,
): Promise<void> {
  await using file = await open(path, "r+");
  // Of the line that begins what was read and not written yet.
  let position = 0;
  let unread = Buffer.alloc(0);
  for await (const bytes of file.createReadStream({ autoClose: false, start: 0 })) {
    unread = Buffer.concat([unread, bytes]);
    let start = 0;
    for (let end; (end = unread.indexOf(newline, start)) !== -1; start = end + 1) {
      const line = unread.subarray(start, end);
      if (!isMeant(line.toString())) continue;
      for (const [part, other] of parts) {
        const at = line.indexOf(part);
        if (at === -1) continue;
        await file.write(other.padEnd(Buffer.byteLength(part)), position + start + at);
      }
    }
    position += start;
    unread = unread.subarray(start);
  }
  await file.datasync();
}

/** Length of the file up to its last line end; lines are much shorter than what is read. */
async function wholeLines(file: FileHandle): Promise<number> {
  const { size } = await file.stat();
  const start = Math.max(0, size - readAtOnce);
  const { buffer, bytesRead } = await file.read(Buffer.alloc(readAtOnce), { position: start });
  return start + buffer.subarray(0, bytesRead).lastIndexOf(newline) + 1;
}
