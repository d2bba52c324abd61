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
  /** Where checkpoints are kept beside the log; undefined: nowhere. */
  readonly file: CheckpointFile | undefined;
  /** The checkpoint as a line. */
  readonly onCheckpoint: (line: string, checkpoint: AuditCheckpoint) => void;
  /** The audit is not what this installation wrote. */
  readonly onBroken: (what: string) => void;
  /** What stopped this checkpoint; the next one is made in its time. */
  readonly onFailed: (error: unknown) => void;
  readonly onWritten: () => void;
}

export interface CheckpointFile {
  /** Undefined when there is none yet. */
  lastLine(): Promise<string | undefined>;
  append(line: string): Promise<void>;
}

/**
 * Tells where the audit ends at the start, every interval and at the end, for places that writers of
 * the database cannot write. Notices when the audit no longer has what it told of before.
 */
export class AuditCheckpointJob {
  readonly #options: AuditCheckpointOptions;
  #told: AuditLink | undefined;
  #cancel: (() => void) | undefined;
  #running: Promise<void> = Promise.resolve();

  constructor(options: AuditCheckpointOptions) {
    this.#options = options;
  }

  start(): void {
    this.#run();
  }

  /** Makes the last one. */
  async stop(): Promise<void> {
    this.#cancel?.();
    await this.#running;
    await this.make();
  }

  /** Never rejects. */
  async make(): Promise<void> {
    const { store, onBroken, onFailed, onWritten } = this.#options;
    try {
      this.#told ??= await this.#readTold();
      const { end, hasKnown } = await store.auditEnd(this.#told);
      if (end === undefined) return onBroken("its end is not what this installation wrote");
      if (!hasKnown) onBroken("entries are gone that a checkpoint told of");
      await this.#tell(end);
      this.#told = end;
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

  async #readTold(): Promise<AuditLink | undefined> {
    const { file, seals, onBroken } = this.#options;
    const line = await file?.lastLine();
    if (line === undefined) return undefined;
    const checkpoint = readCheckpoint(line, seals);
    if (checkpoint === undefined) onBroken("the last checkpoint is not this installation's");
    return checkpoint;
  }

  async #tell(end: AuditLink): Promise<void> {
    const { seals, clock, file, onCheckpoint } = this.#options;
    const checkpoint = { ...end, at: new Date(clock.now()).toISOString() };
    const line = writeCheckpoint(checkpoint, seals);
    onCheckpoint(line, checkpoint);
    await file?.append(line);
  }
}
