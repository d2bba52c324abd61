import { abortable } from "../../../domain/waiting/abortable.ts";
import { UpstreamFailure } from "../../../domain/errors/upstream-failure.ts";
import type { AwsCredentials, LoadCredentials } from "./credentials.ts";
import type { Signature } from "./sign.ts";

export interface CredentialCacheOptions {
  readonly load: LoadCredentials;
  /** The provider's time, in which credentials expire. */
  readonly nowMs: () => number;
  readonly monotonicMs: () => number;
  /** Told of every fetch that fails, also while older credentials still serve. */
  readonly onLoadFailed: (failure: UpstreamFailure) => void;
}

/** Nearer to their end than this, others are fetched while these still serve. */
const refreshAheadMs = 5 * 60_000;
/** Credentials without an end may lie in a file that somebody rotates. */
const rereadAfterMs = 15 * 60_000;
/** Between two tries while calls can be served without. */
const backgroundFloorMs = 30_000;
/** Between two tries while calls fail without. */
const blockingFloorMs = 1_000;
/** Until credentials that replaced refused ones and are refused too are replaced in turn. */
const replacementFloorMs = 10_000;
/** A source that has not answered by then is asked anew. */
const loadLimitMs = 60_000;

/**
 * One set of credentials for all calls: fetched once however many wait, replaced in the background
 * before it ends, kept as long as it is valid when no other can be had.
 */
export class CredentialCache {
  readonly #options: CredentialCacheOptions;
  #held: Held | undefined;
  #loading: Loading | undefined;
  #loads = 0;
  #triedAtMs = Number.NEGATIVE_INFINITY;
  #failure: UpstreamFailure | undefined;

  constructor(options: CredentialCacheOptions) {
    this.#options = options;
  }

  /**
   * Waits only when there are no valid credentials at hand. Rejects with `UpstreamFailure`
   * `bad-credential`, or the signal's reason; the fetch goes on for others then.
   */
  async get(signal: AbortSignal): Promise<AwsCredentials> {
    const atHand = this.#valid();
    if (atHand !== undefined) {
      if (this.#isDue(atHand)) void this.#refresh();
      return atHand;
    }
    signal.throwIfAborted();
    if (this.#failure === undefined || this.#sinceTry() >= blockingFloorMs) {
      await abortable(this.#refresh(), signal);
      // Given up for a newer fetch: that one tells.
      while (this.#loading !== undefined) await abortable(this.#loading.ended, signal);
    }
    const fetched = this.#valid();
    if (fetched !== undefined) return fetched;
    throw this.#failure ?? new UpstreamFailure(nothingLoaded);
  }

  /** The provider refused what these signed. Others' refusals, that came too late, are ignored. */
  refuse(signedBy: Pick<Signature, "accessKeyId" | "sessionToken">): void {
    const held = this.#held;
    if (held === undefined) return;
    const { accessKeyId, sessionToken } = held.credentials;
    if (accessKeyId !== signedBy.accessKeyId) return;
    if (sessionToken?.reveal() !== signedBy.sessionToken) return;
    const ageMs = this.#options.monotonicMs() - held.loadedAtMs;
    if (held.isReplacement && ageMs < replacementFloorMs) return;
    held.isRefused = true;
  }

  #valid(): AwsCredentials | undefined {
    const held = this.#held;
    if (held === undefined || held.isRefused) return undefined;
    const { expiresAtMs } = held.credentials;
    if (expiresAtMs === undefined || this.#options.nowMs() < expiresAtMs) return held.credentials;
    // What looks expired when it comes is tried: it may be our clock that is wrong, which only the
    // answer to a request can tell.
    const ageMs = this.#options.monotonicMs() - held.loadedAtMs;
    return ageMs < blockingFloorMs ? held.credentials : undefined;
  }

  #isDue({ expiresAtMs }: AwsCredentials): boolean {
    if (this.#sinceTry() < backgroundFloorMs) return false;
    if (expiresAtMs === undefined) return this.#sinceTry() >= rereadAfterMs;
    return expiresAtMs - this.#options.nowMs() < refreshAheadMs;
  }

  #sinceTry(): number {
    return this.#options.monotonicMs() - this.#triedAtMs;
  }

  /** Resolves when the fetch under way has ended, well or not, or is given up for a newer one. */
  #refresh(): Promise<void> {
    const startedAtMs = this.#options.monotonicMs();
    const running = this.#loading;
    if (running !== undefined && startedAtMs - running.startedAtMs < loadLimitMs) {
      return running.ended;
    }
    this.#loads += 1;
    const load = this.#loads;
    const { promise: ended, resolve: end } = Promise.withResolvers<void>();
    this.#loading = { startedAtMs, ended, end };
    void this.#load(load).then(() => {
      if (load === this.#loads) this.#loading = undefined;
      end();
    });
    running?.end();
    return ended;
  }

  async #load(load: number): Promise<void> {
    try {
      const credentials = await this.#options.load();
      if (load === this.#loads) this.#hold(credentials);
    } catch (error) {
      const failure = asFailure(error);
      if (load === this.#loads) this.#failure = failure;
      this.#options.onLoadFailed(failure);
    }
    if (load === this.#loads) this.#triedAtMs = this.#options.monotonicMs();
  }

  #hold(credentials: AwsCredentials): void {
    this.#held = {
      credentials,
      loadedAtMs: this.#options.monotonicMs(),
      isRefused: false,
      isReplacement: this.#held?.isRefused === true,
    };
    this.#failure = undefined;
  }
}

interface Held {
  readonly credentials: AwsCredentials;
  readonly loadedAtMs: number;
  isRefused: boolean;
  /** They came, perhaps unchanged, after a refusal. */
  readonly isReplacement: boolean;
}

interface Loading {
  readonly startedAtMs: number;
  readonly ended: Promise<void>;
  readonly end: () => void;
}

const nothingLoaded = {
  kind: "bad-credential",
  message: "credentials could not be loaded",
} as const;

function asFailure(error: unknown): UpstreamFailure {
  if (error instanceof UpstreamFailure) return error;
  return new UpstreamFailure(nothingLoaded, { cause: error });
}
