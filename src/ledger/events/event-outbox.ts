import { mkdir, open, readdir, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { EventFile, syncFolder } from "./event-file.ts";
import type { EventSink } from "./stored-events.ts";

/** A position between two events. */
interface Position {
  readonly segment: number;
  readonly offset: number;
}

export interface EventBatch {
  readonly lines: readonly string[];
  readonly end: Position;
}

export interface EventOutboxOptions {
  /** Created if missing; used by one process only. */
  readonly folder: string;
  readonly segmentBytes: number;
}

/** More than any batch, so that reading one needs little memory. */
const readBytes = 1_048_576;
const positionFile = "position.json";

/**
 * Events that wait for their receiver, in numbered files, and the position up to which it has them.
 * Both survive a crash.
 */
export class EventOutbox implements EventSink {
  readonly #options: EventOutboxOptions;
  #file: EventFile | undefined;
  #opening: Promise<EventFile> | undefined;
  #segment = 1;
  /** Whether the segment and the position have been read from the folder. */
  #isKnown = false;
  #position: Position = { segment: 1, offset: 0 };

  constructor(options: EventOutboxOptions) {
    this.#options = options;
  }

  async append(lines: readonly string[]): Promise<void> {
    if (this.#file !== undefined && this.#file.bytes >= this.#options.segmentBytes) {
      await this.#file.close();
      this.#file = undefined;
      this.#segment += 1;
    }
    const file = await this.#newest();
    await file.append(lines.map((line) => `${line}\n`).join(""));
  }

  /** The next events, oldest first; undefined if the receiver has all. */
  async next(mostEvents: number): Promise<EventBatch | undefined> {
    await this.#newest();
    let { segment, offset } = this.#position;
    for (;;) {
      const isNewest = segment === this.#segment;
      const end = isNewest ? (this.#file?.bytes ?? 0) : undefined;
      const lines = await this.#readLines({ segment, offset }, { mostEvents, end });
      if (lines.length > 0) {
        const bytes = lines.reduce((sum, line) => sum + Buffer.byteLength(line) + 1, 0);
        return { lines, end: { segment, offset: offset + bytes } };
      }
      if (isNewest) return undefined;
      segment += 1;
      offset = 0;
    }
  }

  /** The receiver has the batch. */
  async confirm({ end }: EventBatch): Promise<void> {
    const { folder } = this.#options;
    const path = join(folder, positionFile);
    await using file = await open(`${path}.new`, "w", 0o600);
    await file.writeFile(JSON.stringify(end));
    await file.sync();
    await rename(`${path}.new`, path);
    await syncFolder(path);
    this.#position = end;
    for (const segment of await this.#segments()) {
      if (segment < end.segment) await rm(this.#path(segment), { force: true });
    }
  }

  async close(): Promise<void> {
    await this.#file?.close();
    this.#file = undefined;
  }

  #newest(): Promise<EventFile> {
    if (this.#file !== undefined) return Promise.resolve(this.#file);
    this.#opening ??= this.#open().finally(() => {
      this.#opening = undefined;
    });
    return this.#opening;
  }

  async #open(): Promise<EventFile> {
    if (!this.#isKnown) await this.#find();
    this.#file = await EventFile.open(this.#path(this.#segment));
    return this.#file;
  }

  /** Continues where an earlier process ended. */
  async #find(): Promise<void> {
    const { folder } = this.#options;
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const segments = await this.#segments();
    const text = await readIfAny(join(folder, positionFile));
    const first = segments.length === 0 ? 1 : Math.min(...segments);
    this.#position = text === undefined ? { segment: first, offset: 0 } : parsePosition(text);
    this.#segment = Math.max(this.#position.segment, ...segments);
    this.#isKnown = true;
  }

  async #segments(): Promise<readonly number[]> {
    const names = await readdir(this.#options.folder);
    return names.flatMap((name) => (/^\d+\.ndjson$/.test(name) ? [Number.parseInt(name, 10)] : []));
  }

  async #readLines(
    { segment, offset }: Position,
    { mostEvents, end }: { readonly mostEvents: number; readonly end: number | undefined },
  ): Promise<readonly string[]> {
    await using file = await open(this.#path(segment), "r");
    const size = end ?? (await file.stat()).size;
    const buffer = Buffer.alloc(Math.max(0, Math.min(readBytes, size - offset)));
    const { bytesRead } = await file.read(buffer, 0, buffer.byteLength, offset);
    const text = buffer.toString("utf8", 0, buffer.lastIndexOf("\n", bytesRead) + 1);
    return text.split("\n").slice(0, -1).slice(0, mostEvents);
  }

  #path(segment: number): string {
    return join(this.#options.folder, `${String(segment).padStart(12, "0")}.ndjson`);
  }
}

async function readIfAny(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
}

function parsePosition(text: string): Position {
  const value: unknown = JSON.parse(text);
  if (typeof value === "object" && value !== null && "segment" in value && "offset" in value) {
    const { segment, offset } = value;
    if (Number.isSafeInteger(segment) && Number.isSafeInteger(offset)) {
      return { segment: Number(segment), offset: Number(offset) };
    }
  }
  throw new Error(`${positionFile} of the events is damaged`);
}
