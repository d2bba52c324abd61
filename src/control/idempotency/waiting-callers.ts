/** Callers who wait for the same work: it is given up when the last of them has left. */
export class WaitingCallers {
  readonly #all = new AbortController();
  #count = 0;

  constructor(first: AbortSignal) {
    this.join(first);
  }

  /** Fires when nobody waits any more. */
  get signal(): AbortSignal {
    return this.#all.signal;
  }

  get isAbandoned(): boolean {
    return this.#all.signal.aborted;
  }

  join(caller: AbortSignal): void {
    this.#count += 1;
    const leave = (): void => {
      this.#count -= 1;
      if (this.#count === 0) this.#all.abort(caller.reason);
    };
    if (caller.aborted) leave();
    else caller.addEventListener("abort", leave, { once: true });
  }
}
