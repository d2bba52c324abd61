import { EndSource, type EndSignal } from "../../domain/waiting/end-signal.ts";

/**
 * The signal of a caller for an answer that may outlive it. Aborts `signal` when the caller leaves,
 * until `handOver`.
 */
export class CallerSignal {
  readonly source: EndSignal;
  readonly #end = new EndSource();
  #onEnd = (reason: unknown): void => this.abort(reason);
  readonly #follow = (): void => this.#onEnd(this.source.reason);

  constructor(source: EndSignal) {
    this.source = source;
    if (source.aborted) this.#follow();
    else source.addEventListener("abort", this.#follow, { once: true });
  }

  get signal(): EndSignal {
    return this.#end;
  }

  /** From now on only `onEnd` is called when the caller leaves. */
  handOver(onEnd: (reason: unknown) => void): void {
    this.#onEnd = onEnd;
    if (this.source.aborted) this.#follow();
  }

  /** Aborts `signal`. */
  abort(reason: unknown): void {
    this.#end.abort(reason);
  }

  /** Stops following the caller. */
  release(): void {
    this.source.removeEventListener("abort", this.#follow);
  }
}
