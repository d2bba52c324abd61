import {
  type AuditCheckpoint,
  readCheckpoint,
  writeCheckpoint,
  type AuditLink,
} from "../domain/audit/audit-checkpoint.ts";
import type { AuditSeals } from "../domain/audit/audit-seals.ts";
import type { Clock } from "../domain/clock.ts";
import type { ControlStore } from "./control-store.ts";

export interface AuditCheckpointOptions {
  readonly store: Pick<ControlStore, "auditEnd">;
  readonly seals: AuditSeals;
  readonly clock: Pick<Clock, "now" | "schedule">;
  readonly intervalMs: number;
  /** Where checkpoints are kept besides the log; undefined: only there. */
  readonly file: CheckpointFile | undefined;
  readonly onCheckpoint: (line: string, checkpoint: AuditCheckpoint) => void;
  /** Called when the audit is not what this installation wrote. */
  readonly onBroken: (what: string) => void;
  /** Called when a checkpoint fails; the next one is made as scheduled. */
  readonly onFailed: (error: unknown) => void;
  readonly onWritten: () => void;
}

export interface CheckpointFile {
  /** Undefined when there is none yet. */
  lastLine(): Promise<string | undefined>;
  append(line: string): Promise<void>;
}

/**
 * Publishes the end of the audit at start, every interval and at stop, where writers of the
 * database cannot change it. Detects when the audit no longer contains the previous checkpoint.
 */
export class AuditCheckpointJob {
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
    const { store, onBroken, onFailed, onWritten } = this.#options;
    try {
      this.#published ??= await this.#readLast();
      const { end, hasKnown } = await store.auditEnd(this.#published);
      if (end === undefined) return onBroken("its end is not what this installation wrote");
      if (!hasKnown) onBroken("entries that a checkpoint covers are missing");
      await this.#publish(end);
      this.#published = end;
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
    const { file, seals, onBroken } = this.#options;
    const line = await file?.lastLine();
    if (line === undefined) return undefined;
    const checkpoint = readCheckpoint(line, seals);
    if (checkpoint === undefined) onBroken("the last checkpoint is not this installation's");
    return checkpoint;
  }

  async #publish(end: AuditLink): Promise<void> {
    const { seals, clock, file, onCheckpoint } = this.#options;
    const checkpoint = { ...end, at: new Date(clock.now()).toISOString() };
    const line = writeCheckpoint(checkpoint, seals);
    onCheckpoint(line, checkpoint);
    await file?.append(line);
  }
}
