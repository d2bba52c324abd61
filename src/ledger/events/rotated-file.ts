import { rename } from "node:fs/promises";
import type { EventFileSettings } from "../../domain/settings.ts";
import { EventFile, syncFolder } from "./event-file.ts";
import type { EventSink } from "./stored-events.ts";

/** Appends events to a file that is renamed when it is large. */
export class RotatedFile implements EventSink {
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
