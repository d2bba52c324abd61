import { ManualClock } from "./manual-clock.ts";

/** What is scheduled runs when the test says so. */
export class SteppedClock extends ManualClock {
  readonly scheduled = new Set<() => void>();

  override schedule(run: () => void): () => void {
    this.scheduled.add(run);
    return () => this.scheduled.delete(run);
  }

  /** Runs what is due now, and waits for what it begins. */
  async runScheduled(): Promise<void> {
    const due = [...this.scheduled];
    this.scheduled.clear();
    for (const run of due) run();
    await new Promise((resolve) => setImmediate(resolve));
  }
}
