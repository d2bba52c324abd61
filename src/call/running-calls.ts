import { EndSource, type EndSignal } from "../domain/waiting/end-signal.ts";
import { systemClock, type Clock } from "../domain/clock.ts";
import type { GatewayError } from "../domain/errors/gateway-error.ts";
import type { Call } from "../snapshot/call.ts";
import { atDeadline } from "../domain/waiting/wait.ts";
import { keyEnded, type KeyFault } from "../keys/key-refusal.ts";

/**
 * Running calls. A call ends when its key is revoked or disabled, at the caller's deadline, and at
 * shutdown. The end of a secret, as in a rotation, ends no call: the key stays live.
 */
export class RunningCalls {
  readonly #isLive: (keyId: string) => boolean;
  readonly #findEnded: (publicId: string) => KeyFault | undefined;
  readonly #clock: Pick<Clock, "schedule" | "monotonic">;
  readonly #calls = new Map<string, RunningCall>();
  readonly #ending = new EndSource();
  #entered = 0;

  /** `isLive`: neither revoked nor disabled; `findEnded`: how a secret ended. */
  constructor(
    isLive: (keyId: string) => boolean,
    findEnded: (publicId: string) => KeyFault | undefined = () => undefined,
    clock: Pick<Clock, "schedule" | "monotonic"> = systemClock,
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
    return this.#calls.size;
  }

  /** Running calls by key. */
  countByKey(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>();
    for (const { call } of this.#calls.values()) {
      const { id } = call.caller.key;
      counts.set(id, (counts.get(id) ?? 0) + 1);
    }
    return counts;
  }

  /** Aborts at shutdown, for answers that are drained after their own signal has fired. */
  get ending(): EndSignal {
    return this.#ending;
  }

  /**
   * From now on the call's signal also fires when its key ends; call `leave` afterwards. Throws 401
   * if the key has ended since authentication, as while the body was read.
   */
  enter(call: Call): void {
    this.watch(call);
    this.#entered += 1;
  }

  /** As `enter`, for a call that waits until it may run. */
  watch(call: Call): void {
    if (!this.#isLive(call.caller.key.id)) throw this.#whyEnded(call);
    const cancelDeadline = atDeadline(call, this.#clock, (error) => call.signal.abort(error));
    this.#calls.set(call.id, { call, cancelDeadline });
  }

  leave(id: string): void {
    this.#calls.get(id)?.cancelDeadline?.();
    this.#calls.delete(id);
  }

  /** Ends the calls of keys that are no longer live. */
  endStale(): void {
    for (const { call } of this.#calls.values()) {
      if (!this.#isLive(call.caller.key.id)) call.signal.abort(this.#whyEnded(call));
    }
  }

  /** Ends all calls at shutdown with the error from `why`. */
  endAll(why: () => GatewayError): void {
    for (const { call } of this.#calls.values()) call.signal.abort(why());
    this.#ending.abort();
  }

  #whyEnded(call: Call): GatewayError {
    return keyEnded(call, this.#findEnded(call.caller.publicId));
  }
}

interface RunningCall {
  readonly call: Call;
  /** Undefined for a call without a deadline. */
  readonly cancelDeadline: (() => void) | undefined;
}
