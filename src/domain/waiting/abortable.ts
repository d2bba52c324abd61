import type { EndSignal } from "./end-signal.ts";

/**
 * Settles like the promise, or rejects with the signal's reason once it fires. The underlying work
 * continues and its result is dropped.
 */
export function abortable<Value>(promise: Promise<Value>, signal: EndSignal): Promise<Value> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener("abort", abort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}
