import { appendFile, readFile } from "node:fs/promises";
import { errorCode } from "../domain/system-files.ts";
import { type AuditCheckpoint, type AuditLink, readCheckpoint, writeCheckpoint } from "./audit.ts";
import type { Clock } from "../domain/clock.ts";
import type { Peppers } from "../domain/keys/peppers.ts";
import type { ControlStore } from "./repositories/control-store.ts";

export interface AuditCheckpointOptions {
  readonly store: Pick<ControlStore, "auditEnds">;
  readonly peppers: Peppers;
  readonly clock: Pick<Clock, "now" | "schedule">;
  readonly intervalMs: number;
  /** A file with a line for each checkpoint, the newest last; undefined: they are only logged. */
  readonly path: string | undefined;
  /** False: another machine makes checkpoints. */
  readonly isOwn: () => Promise<boolean>;
  readonly onCheckpoint: (line: string, checkpoint: AuditCheckpoint) => void;
  /** Called when the audit lacks what a checkpoint covers. */
  readonly onBroken: (what: string) => void;
  /** Called when a checkpoint fails; the next one is made as scheduled. */
  readonly onFailed: (error: unknown) => void;
  readonly onWritten: () => void;
}

/**
 * Publishes the ends of the audit at start, every interval and at stop, where writers of the database
 * cannot change them. Detects when the audit no longer contains the previous checkpoint.
 */
export class AuditCheckpoints {
  readonly #options: AuditCheckpointOptions;
  #published: AuditLink | undefined;
  #cancel: (() => void) | undefined;
  #running: Promise<void> = Promise.resolve();

  constructor(options: AuditCheckpointOptions) {
    this.#options = options;
  }

  start(): void {
    this.#run();
  }

  /** Makes a last checkpoint. */
  async stop(): Promise<void> {
    this.#cancel?.();
    await this.#running;
    await this.make();
  }

  /** Never rejects. */
  async make(): Promise<void> {
    const { store, peppers, clock, path, isOwn } = this.#options;
    const { onBroken, onCheckpoint, onFailed, onWritten } = this.#options;
    try {
      if (!(await isOwn())) return;
      this.#published ??= await this.#readLast();
      const { first, last, hasKnown } = await store.auditEnds(this.#published);
      if (!hasKnown) onBroken("entries that a checkpoint covers are missing");
      const checkpoint = { ...last, first, at: new Date(clock.now()).toISOString() };
      const line = writeCheckpoint(checkpoint, peppers);
      onCheckpoint(line, checkpoint);
      if (path !== undefined) await appendFile(path, `${line}\n`, { mode: 0o600, flush: true });
      this.#published = last;
      onWritten();
    } catch (error) {
      onFailed(error);
    }
  }

  #run(): void {
    const { clock, intervalMs } = this.#options;
    this.#running = this.make();
    this.#cancel = clock.schedule(() => this.#run(), intervalMs);
  }

  async #readLast(): Promise<AuditLink | undefined> {
    const { path, peppers, onBroken } = this.#options;
    const line = path === undefined ? undefined : await readLastLine(path);
    if (line === undefined) return undefined;
    const checkpoint = readCheckpoint(line, peppers);
    if (checkpoint === undefined) onBroken("the last checkpoint is not this installation's");
    return checkpoint;
  }
}

/** Undefined when there is none yet. */
async function readLastLine(path: string): Promise<string | undefined> {
  try {
    const lines = (await readFile(path, "utf8")).split("\n");
    return lines.findLast((line) => line.trim() !== "");
  } catch (error) {
    if (errorCode(error) === "ENOENT") return undefined;
    throw error;
  }
}
