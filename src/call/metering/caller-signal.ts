/**
 * The signal of a caller, for an answer that may outlive it. It ends what runs under `signal`,
 * until somebody else is put in charge of what happens then.
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

  /** From now on the end of the caller does this, and only this. */
  handOver(onEnd: (reason: unknown) => void): void {
    this.#onEnd = onEnd;
    if (this.source.aborted) this.#follow();
  }

  /** Ends what runs under `signal`. */
  abort(reason: unknown): void {
    this.#controller.abort(reason);
  }

  /** Whether the caller leaves matters no more. */
  release(): void {
    this.source.removeEventListener("abort", this.#follow);
  }
}
