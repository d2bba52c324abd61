import type { Clock } from "../../domain/clock.ts";
import { abortable } from "../../domain/waiting/wait.ts";
import { UpstreamFailure } from "../../domain/errors/upstream-failure.ts";

/** Undefined: it does not expire, as far as is known. Unix time in milliseconds. */
interface Expiring {
  readonly expiresAtMs: number | undefined;
}

export interface CredentialCacheOptions<Credential> {
  readonly load: () => Promise<Credential>;
  /** The provider's time, in which credentials expire. */
  readonly nowMs: () => number;
  readonly clock: Pick<Clock, "monotonic" | "schedule">;
  /** Called for every fetch that fails, even while older credentials are still valid. */
  readonly onLoadFailed: (failure: UpstreamFailure) => void;
}

/** Credentials are replaced this long before they expire, while they are still used. */
const refreshAheadMs = 5 * 60_000;
/** Credentials without an expiry may come from a file that is rotated. */
const rereadAfterMs = 15 * 60_000;
/** Time between two fetches while calls still have credentials. */
const backgroundFloorMs = 30_000;
/** Time between two fetches while calls fail without credentials. */
const blockingFloorMs = 1_000;
/** Time until refused credentials that replaced other refused ones are replaced again. */
const replacementFloorMs = 10_000;
/** A source that has not answered by then has failed, and may be asked again. */
const loadLimitMs = 60_000;

/**
 * One set of credentials for all calls: fetched once for all waiting calls, replaced in the
 * background before it expires, and kept while it is valid if no other can be fetched.
 */
export class CredentialCache<Credential extends Expiring> {
  readonly #options: CredentialCacheOptions<Credential>;
  #held: Held<Credential> | undefined;
  #loading: Promise<void> | undefined;
  #triedAtMs = Number.NEGATIVE_INFINITY;
  #failure: UpstreamFailure | undefined;

  constructor(options: CredentialCacheOptions<Credential>) {
    this.#options = options;
  }

  /**
   * Waits only when there are no valid credentials. Rejects with `UpstreamFailure`
   * `bad-credential`, or the signal's reason; the fetch then continues for other calls.
   */
  get(ending: { readonly signal: AbortSignal }): Credential | Promise<Credential> {
    const atHand = this.#valid();
    if (atHand === undefined) return this.#fetched(ending.signal);
    if (this.#isDue(atHand)) void this.#refresh();
    return atHand;
  }

  async #fetched(signal: AbortSignal): Promise<Credential> {
    signal.throwIfAborted();
    if (this.#failure === undefined || this.#sinceTry() >= blockingFloorMs) {
      await abortable(this.#refresh(), signal);
    }
    const fetched = this.#valid();
    if (fetched !== undefined) return fetched;
    throw this.#failure ?? new UpstreamFailure(nothingLoaded);
  }

  /**
   * Why there are no valid credentials; undefined if there are, or if that is not known yet.
   * Sometimes fetches again, because a gateway that is not ready gets no calls.
   */
  whyNone(): string | undefined {
    if (this.#valid() !== undefined) return undefined;
    if (this.#sinceTry() >= backgroundFloorMs) void this.#refresh();
    return this.#failure?.message;
  }

  /** The provider refused such credentials. A late refusal of older ones is ignored. */
  refuse(isRefused: (credentials: Credential) => boolean): void {
    const held = this.#held;
    if (held === undefined || !isRefused(held.credentials)) return;
    const ageMs = this.#options.clock.monotonic() - held.loadedAtMs;
    if (held.isReplacement && ageMs < replacementFloorMs) return;
    held.isRefused = true;
  }

  #valid(): Credential | undefined {
    const held = this.#held;
    if (held === undefined || held.isRefused) return undefined;
    const { expiresAtMs } = held.credentials;
    if (expiresAtMs === undefined || this.#options.nowMs() < expiresAtMs) return held.credentials;
    // New credentials that appear to be expired are used: our clock may be wrong, which only the
    // answer to a request can show.
    const ageMs = this.#options.clock.monotonic() - held.loadedAtMs;
    return ageMs < blockingFloorMs ? held.credentials : undefined;
  }

  #isDue({ expiresAtMs }: Credential): boolean {
    if (this.#sinceTry() < backgroundFloorMs) return false;
    if (expiresAtMs === undefined) return this.#sinceTry() >= rereadAfterMs;
    return expiresAtMs - this.#options.nowMs() < refreshAheadMs;
  }

  #sinceTry(): number {
    return this.#options.clock.monotonic() - this.#triedAtMs;
  }

  /** Resolves when the current fetch has ended in any way. */
  #refresh(): Promise<void> {
    this.#loading ??= this.#load().finally(() => {
      this.#loading = undefined;
    });
    return this.#loading;
  }

  async #load(): Promise<void> {
    const { load, clock, onLoadFailed } = this.#options;
    const limit = Promise.withResolvers<never>();
    const cancel = clock.schedule(() => limit.reject(new Error("no answer")), loadLimitMs);
    try {
      this.#hold(await Promise.race([load(), limit.promise]));
    } catch (error) {
      this.#failure = asFailure(error);
      onLoadFailed(this.#failure);
    }
    cancel();
    this.#triedAtMs = clock.monotonic();
  }

  #hold(credentials: Credential): void {
    this.#held = {
      credentials,
      loadedAtMs: this.#options.clock.monotonic(),
      isRefused: false,
      isReplacement: this.#held?.isRefused === true,
    };
    this.#failure = undefined;
  }
}

interface Held<Credential> {
  readonly credentials: Credential;
  readonly loadedAtMs: number;
  isRefused: boolean;
  /** Set when credentials were fetched after a refusal, even if they are unchanged. */
  readonly isReplacement: boolean;
}

const nothingLoaded = {
  kind: "bad-credential",
  message: "credentials could not be loaded",
} as const;

function asFailure(error: unknown): UpstreamFailure {
  if (error instanceof UpstreamFailure) return error;
  return new UpstreamFailure(nothingLoaded, { cause: error });
}
