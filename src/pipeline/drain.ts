import { GatewayError } from "../domain/gateway-error.ts";
import type { InFlight } from "./in-flight.ts";

/** Answers of one upstream that are read on after their callers have left. */
export interface Draining {
  /** For one answer. */
  readonly timeoutMs: number;
  /** Taken while one is read on; without a free one it is aborted. */
  readonly places: InFlight;
}

/** An answer that may be read on. */
export interface DrainableAnswer extends Draining {
  readonly caller: CallerSignal;
}

/**
 * The signal of a caller, for an answer that may outlive it. It ends what runs under `signal`,
 * until somebody else is put in charge of what happens then.
 */
export class CallerSignal {
  readonly #source: AbortSignal;
  readonly #controller = new AbortController();
  #onLeft: () => void = () => this.#controller.abort(this.#source.reason);
  readonly #follow = (): void => {
    // What the gateway itself ends is not read on.
    if (this.#source.reason instanceof GatewayError) this.#controller.abort(this.#source.reason);
    else this.#onLeft();
  };

  constructor(source: AbortSignal) {
    this.#source = source;
    if (source.aborted) this.#follow();
    else source.addEventListener("abort", this.#follow, { once: true });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** From now on the caller's leaving does this, and only this. */
  handOver(onLeft: () => void): void {
    this.#onLeft = onLeft;
    if (this.#source.aborted) this.#follow();
  }

  /** Whether the caller leaves matters no more. */
  release(): void {
    this.#source.removeEventListener("abort", this.#follow);
  }
}
