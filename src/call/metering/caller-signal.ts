/**
 * The signal of a caller for an answer that may outlive it. Aborts `signal` when the caller leaves,
 * until `handOver`.
 */
export class CallerSignal {
  readonly source: AbortSignal;
  readonly #controller = new AbortController();
  #onEnd = (reason: unknown): void => this.abort(reason);
  readonly #follow = (): void => this.#onEnd(this.source.reason);

  constructor(source: AbortSignal) {
    this.source = source;
    if (source.aborted) this.#follow();
    else source.addEventListener("abort", this.#follow, { once: true });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** From now on only `onEnd` is called when the caller leaves. */
  handOver(onEnd: (reason: unknown) => void): void {
    this.#onEnd = onEnd;
    if (this.source.aborted) this.#follow();
  }

  /** Aborts `signal`. */
  abort(reason: unknown): void {
    this.#controller.abort(reason);
  }

  /** Stops following the caller. */
  release(): void {
    this.source.removeEventListener("abort", this.#follow);
  }
}
