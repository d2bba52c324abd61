/** Runs a task one at a time. Requests that come during a run share the next one. */
export class Coalesced<Result> {
  readonly #task: () => Promise<Result>;
  #running: Promise<Result> | undefined;
  #next: Promise<Result> | undefined;

  constructor(task: () => Promise<Result>) {
    this.#task = task;
  }

  run(): Promise<Result> {
    if (this.#running === undefined) return this.#begin();
    return (this.#next ??= this.#beginAfter(this.#running));
  }

  /** Resolves once no run that was requested before is left. */
  async idle(): Promise<void> {
    await Promise.allSettled([this.#running, this.#next]);
  }

  async #beginAfter(earlier: Promise<Result>): Promise<Result> {
    await earlier.catch(() => undefined);
    this.#next = undefined;
    return this.#begin();
  }

  #begin(): Promise<Result> {
    const running = this.#task().finally(() => {
      if (this.#next === undefined) this.#running = undefined;
    });
    this.#running = running;
    return running;
  }
}
