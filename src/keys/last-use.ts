import type { KeyStore, RenewedSecret } from "../store/store.ts";

export interface LastUseOptions {
  readonly store: Pick<KeyStore, "recordLastUse">;
  /** Interval between writes. */
  readonly intervalMs: number;
  /** What is told of writes. The uses of a failed one are kept. */
  readonly on?: { failed(error: unknown): void; recovered(): void };
}

/** Limit on secrets with an unwritten use; further ones are not recorded. */
const secretsLimit = 100_000;
/** Secrets per write, so that the database is never busy for long. */
const batchSecrets = 1_000;

/** When secrets were last used: recorded in memory at every call, stored every few seconds. */
export class LastUse {
  readonly #options: LastUseOptions;
  readonly #uses = new Map<string, number>();
  #storing: Promise<void> | undefined;
  #timer: ReturnType<typeof setInterval> | undefined;

  constructor(options: LastUseOptions) {
    this.#options = options;
  }

  /** Runs in every call. The time is in milliseconds since the epoch. */
  note(publicId: string, at: number): void {
    if (this.#uses.size >= secretsLimit && !this.#uses.has(publicId)) return;
    this.#uses.set(publicId, at);
  }

  /** The last use that is not stored yet, if any. */
  of(publicId: string): number | undefined {
    return this.#uses.get(publicId);
  }

  start(): void {
    this.#timer = setInterval(() => void this.flush(), this.#options.intervalMs);
  }

  /** Stores the remaining uses; those that fail are lost. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#storing;
    await this.flush();
  }

  /** Stores the recorded uses. Never rejects: a failure is reported and the uses are kept. */
  flush(): Promise<void> {
    this.#storing ??= this.#store().finally(() => {
      this.#storing = undefined;
    });
    return this.#storing;
  }

  async #store(): Promise<void> {
    // Uses recorded meanwhile wait for the next flush, or this would never end under load.
    const recorded = [...this.#uses];
    try {
      for (let start = 0; start < recorded.length; start += batchSecrets) {
        const batch = recorded.slice(start, start + batchSecrets);
        await this.#options.store.recordLastUse(new Map(batch));
        this.#forget(batch);
      }
      if (recorded.length > 0) this.#options.on?.recovered();
    } catch (error) {
      this.#options.on?.failed(error);
    }
  }

  /** Keeps those that were used again during the write. */
  #forget(stored: readonly (readonly [string, number])[]): void {
    for (const [publicId, at] of stored) {
      if (this.#uses.get(publicId) === at) this.#uses.delete(publicId);
    }
  }
}

/**
 * Moves a secret's digest to the first pepper when it is used. Only one runs at a time, so that
 * calls never wait for the database behind renewals; a skipped secret is renewed at its next use.
 */
export function digestRenewal(store: Pick<KeyStore, "renewDigest">) {
  let running: Promise<void> | undefined;
  return {
    note(outdated: RenewedSecret): void {
      // The poll of the key ring reports an unavailable store.
      running ??= store
        .renewDigest(outdated)
        .catch(() => undefined)
        .finally(() => {
          running = undefined;
        });
    },
    /** Waits for the running renewal. */
    stop: () => running,
  };
}
