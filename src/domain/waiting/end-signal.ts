/** Tells once that something has ended, and why. Every `AbortSignal` is one. */
export interface EndSignal {
  readonly aborted: boolean;
  readonly reason: unknown;
  addEventListener(type: "abort", listener: () => void, options: { readonly once: true }): void;
  removeEventListener(type: "abort", listener: () => void): void;
}

/** Ends a signal of its own. Unlike those of the runtime, neither costs more than its memory. */
export class EndSource implements EndSignal {
  #listeners: (() => void)[] = [];
  #runtime: AbortController | undefined;
  #aborted = false;
  #reason: unknown;

  get aborted(): boolean {
    return this.#aborted;
  }

  get reason(): unknown {
    return this.#reason;
  }

  /** Has no effect after the first time. */
  abort(reason: unknown = new DOMException("it was ended", "AbortError")): void {
    if (this.#aborted) return;
    this.#aborted = true;
    this.#reason = reason;
    const listeners = this.#listeners;
    this.#listeners = [];
    for (const listener of listeners) call(listener);
    this.#runtime?.abort(reason);
  }

  addEventListener(_: "abort", listener: () => void): void {
    if (!this.#aborted) this.#listeners.push(listener);
  }

  removeEventListener(_: "abort", listener: () => void): void {
    const index = this.#listeners.lastIndexOf(listener);
    if (index === this.#listeners.length - 1) this.#listeners.pop();
    else if (index !== -1) this.#listeners.splice(index, 1);
  }

  /** The same as a signal of the runtime, made when first needed. */
  get abortSignal(): AbortSignal {
    if (this.#runtime === undefined) {
      this.#runtime = new AbortController();
      if (this.#aborted) this.#runtime.abort(this.#reason);
    }
    return this.#runtime.signal;
  }
}

/** Ends with the signal, or before it. */
export function endingWith(signal: EndSignal): EndSource {
  const source = new EndSource();
  const end = (): void => source.abort(signal.reason);
  if (signal.aborted) end();
  else signal.addEventListener("abort", end, { once: true });
  return source;
}

/** The signal for interfaces that take one of the runtime. */
export function toAbortSignal(signal: EndSignal): AbortSignal {
  if (signal instanceof EndSource) return signal.abortSignal;
  if (signal instanceof AbortSignal) return signal;
  throw new TypeError("a signal of an unknown kind");
}

/** Fires when the first of the signals does. */
export function anyOf(...signals: readonly EndSignal[]): AbortSignal {
  return AbortSignal.any(signals.map(toAbortSignal));
}

/** One listener's failure must not keep the end from the others. */
function call(listener: () => void): void {
  try {
    listener();
  } catch (error) {
    reportError(error);
  }
}
