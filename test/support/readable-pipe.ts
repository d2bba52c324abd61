import { closeSync, constants, openSync, readSync } from "node:fs";
import { join } from "node:path";

/** A pipe with this test at the reading end. */
export class ReadablePipe implements Disposable {
  readonly path: string;
  #reader: number | undefined;
  #text = "";

  /** In a folder that is deleted with the test. */
  constructor(folder: string) {
    this.path = join(folder, "pipe");
    if (Bun.spawnSync(["mkfifo", this.path]).exitCode !== 0) throw new Error("mkfifo failed");
    this.open();
  }

  open(): void {
    this.#reader = openSync(this.path, constants.O_RDONLY | constants.O_NONBLOCK);
  }

  close(): void {
    if (this.#reader !== undefined) closeSync(this.#reader);
    this.#reader = undefined;
  }

  openWriter(): number {
    return openSync(this.path, "w");
  }

  /** Everything that was read so far. */
  read(): string {
    const piece = Buffer.alloc(65_536);
    for (;;) {
      try {
        const bytes = readSync(this.#reader ?? -1, piece);
        if (bytes === 0) return this.#text;
        this.#text += piece.toString("utf8", 0, bytes);
      } catch (error) {
        if (error instanceof Error && "code" in error && error.code === "EAGAIN") return this.#text;
        throw error;
      }
    }
  }

  [Symbol.dispose](): void {
    this.close();
  }
}
