import { EndSource, type EndSignal } from "../domain/waiting/end-signal.ts";
import { systemClock, type Clock } from "../domain/clock.ts";
import type { GatewayError } from "../domain/errors/gateway-error.ts";
import type { Call } from "../snapshot/call.ts";
import { atDeadline } from "../domain/waiting/wait.ts";
import { keyEnded, type KeyFault } from "../keys/key-refusal.ts";

/**
 * Running calls by key. A call ends when its key is revoked or disabled, at the caller's deadline,
 * and at shutdown. The end of a secret, as in a rotation, ends no call: the key stays live.
 */
export class RunningCalls {
  readonly #isLive: (keyId: string) => boolean;
  readonly #findEnded: (publicId: string) => KeyFault | undefined;
  readonly #clock: CallClock;
  readonly #byKey = new Map<string, Map<string, CallEnd>>();
  readonly #ending = new EndSource();
  #entered = 0;

  /** `isLive`: neither revoked nor disabled; `findEnded`: how a secret ended. */
  constructor(
    isLive: (keyId: string) => boolean,
    findEnded: (publicId: string) => KeyFault | undefined = () => undefined,
    clock: CallClock = systemClock,
  ) {
    this.#isLive = isLive;
    this.#findEnded = findEnded;
    this.#clock = clock;
  }

  /** Number of calls that were ever registered. */
  get entered(): number {
    return this.#entered;
  }

  get size(): number {
    let size = 0;
    for (const calls of this.#byKey.values()) size += calls.size;
    return size;
  }

  /** Aborts at shutdown, for answers that are drained after their own signal has fired. */
  get ending(): EndSignal {
    return this.#ending;
  }

  /**
   * Returns the call with a signal that also fires when its key ends; call `leave` afterwards.
   * Throws 401 if the key has ended since authentication, as while the body was read.
   */
  enter<Entered extends Call>(call: Entered): Entered {
    const entered = this.watch(call);
    this.#entered += 1;
    return entered;
  }

  /** As `enter`, for a call that waits until it may run. */
  watch<Watched extends Call>(call: Watched): Watched {
    const { id: keyId } = call.caller.key;
    if (!this.#isLive(keyId)) throw this.#whyEnded(call);
    const end = new CallEnd(call, this.#clock);
    const calls = this.#byKey.get(keyId);
    if (calls === undefined) this.#byKey.set(keyId, new Map([[call.id, end]]));
    else calls.set(call.id, end);
    return { ...call, signal: end.signal };
  }

  leave({ id, keyId }: { readonly id: string; readonly keyId: string }): void {
    const calls = this.#byKey.get(keyId);
    calls?.get(id)?.release();
    calls?.delete(id);
    if (calls?.size === 0) this.#byKey.delete(keyId);
  }

  /** Ends the calls of keys that are no longer live. */
  endStale(): void {
    for (const [keyId, calls] of this.#byKey) {
      if (this.#isLive(keyId)) continue;
      for (const end of calls.values()) end.because(this.#whyEnded(end.call));
    }
  }

  /** Ends all calls at shutdown with the error from `why`. */
  endAll(why: () => GatewayError): void {
    for (const calls of this.#byKey.values()) {
      for (const end of calls.values()) end.because(why());
    }
    this.#ending.abort(undefined);
  }

  #whyEnded(call: Call): GatewayError {
    return keyEnded(call, this.#findEnded(call.caller.publicId));
  }
}

type CallClock = Pick<Clock, "schedule" | "monotonic">;

/** Ends one call: when the caller leaves, at its deadline, with its key, or at shutdown. */
class CallEnd {
  readonly call: Call;
  readonly #source = new EndSource();
  readonly #onCallerLeft = (): void => this.#source.abort(this.call.signal.reason);
  readonly #cancelDeadline: () => void;

  constructor(call: Call, clock: CallClock) {
    this.call = call;
    this.#cancelDeadline = atDeadline(call, clock, (error) => this.because(error));
    if (call.signal.aborted) this.#onCallerLeft();
    else call.signal.addEventListener("abort", this.#onCallerLeft, { once: true });
  }

  get signal(): EndSignal {
    return this.#source;
  }

  because(error: GatewayError): void {
    this.#source.abort(error);
  }

  release(): void {
    this.#cancelDeadline();
    this.call.signal.removeEventListener("abort", this.#onCallerLeft);
  }
}
