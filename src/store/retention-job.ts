import { systemClock, type Clock } from "../domain/clock.ts";
import { wait } from "../domain/waiting/wait.ts";
import type { ControlStore } from "./repositories/control-store.ts";
import type { UsageStore } from "./store.ts";
import type { RetentionSettings } from "../domain/settings.ts";

export interface RetentionOptions {
  readonly control: Pick<ControlStore, "prune">;
  readonly usage: Pick<UsageStore, "prune">;
  readonly settings: RetentionSettings;
  readonly clock: Clock;
  /** While true nothing is removed, because rows still to be stored might be older. */
  readonly isHeld?: () => boolean;
  /** False: another machine runs the job. */
  readonly isOwn: () => Promise<boolean>;
  /** Called when a run fails; the next run continues from there. */
  readonly onFailed: (error: unknown) => void;
  /** Called after each run without a failure. */
  readonly onDone: () => void;
  /** Called after each run that removed something, even one that failed. */
  readonly onRemoved: (rows: number) => void;
}

const batchesPerRun = 1_000;
/** How often a held job checks whether it may continue. */
const heldMs = 1_000;
/** Longest rest between two batches. */
const longestRestMs = 1_000;
/** Stored answers may be replayed for a day. */
const repliesMs = 86_400_000;

/** Removes rows past their retention, at start and then every interval. */
export class RetentionJob {
  readonly #options: RetentionOptions;
  readonly #stopping = new AbortController();
  #running: Promise<void> | undefined;

  constructor(options: RetentionOptions) {
    this.#options = options;
  }

  start(): void {
    this.#running ??= this.#runAgainAndAgain(this.#stopping.signal);
  }

  /** Waits for the batch in progress. The job cannot be started again. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  /** Removes batch after batch until nothing is left or the signal fires; returns the row count. */
  async runOnce(signal: AbortSignal): Promise<number> {
    const { control, usage, settings, clock } = this.#options;
    const { isOwn, onFailed, onDone, onRemoved } = this.#options;
    const now = clock.now();
    let removed = 0;
    const prune = async (batch: () => Promise<number>): Promise<void> => {
      for (let count = 0; count < batchesPerRun && !signal.aborted; count += 1) {
        const startedAt = clock.monotonic();
        const rows = await batch();
        if (rows === 0) return;
        removed += rows;
        // Half of the time is left for calls.
        await wait(Math.min(clock.monotonic() - startedAt, longestRestMs), signal, systemClock);
      }
    };
    try {
      if (!(await isOwn())) return 0;
      const { callsMs, hoursMs, daysMs, auditMs, revokedKeysMs, batchRows } = settings;
      const ofUsage = { calls: now - callsMs, hours: now - hoursMs, days: now - daysMs };
      await prune(() => usage.prune(ofUsage, batchRows));
      const keys = now - revokedKeysMs;
      const ofControl = { audit: now - auditMs, keys, access: now, replies: now - repliesMs };
      await prune(() => control.prune(ofControl, batchRows));
      if (!signal.aborted) onDone();
    } catch (error) {
      onFailed(error);
    }
    if (removed > 0) onRemoved(removed);
    return removed;
  }

  async #runAgainAndAgain(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      if (this.#options.isHeld?.() === true) {
        await wait(heldMs, signal, systemClock);
        continue;
      }
      await this.runOnce(signal);
      await wait(this.#options.settings.intervalMs, signal, systemClock);
    }
  }
}
