import type { KeyStore } from "../store/store.ts";

export interface LastUseOptions {
  readonly store: Pick<KeyStore, "recordLastUse">;
  /** How often notes are stored. */
  readonly intervalMs: number;
  /** Told of every try that failed; the notes are kept. */
  readonly onFailed: (error: unknown) => void;
  readonly onStored?: () => void;
}

/** Secrets noted between two successful writes; more are not noted until then. */
const secretsLimit = 100_000;
/** Secrets written at once, so that the database is never busy with notes for long. */
const batchSecrets = 1_000;

/** When secrets were last used: noted in memory at every call, stored every few seconds. */
export class LastUse {
  readonly #options: LastUseOptions;
  readonly #uses = new Map<string, number>();
  #storing: Promise<void> | undefined;
  #timer: ReturnType<typeof setInterval> | undefined;

  constructor(options: LastUseOptions) {
    this.#options = options;
  }

  /** On the way of every call. The time is in milliseconds since the epoch. */
  note(publicId: string, at: number): void {
    if (this.#uses.size >= secretsLimit && !this.#uses.has(publicId)) return;
    this.#uses.set(publicId, at);
  }

  /** What is not stored yet; undefined: what the store says holds. */
  of(publicId: string): number | undefined {
    return this.#uses.get(publicId);
  }

  start(): void {
    this.#timer = setInterval(() => void this.flush(), this.#options.intervalMs);
  }

  /** Stores what is left; what cannot be stored is lost then, and only then. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#storing;
    await this.flush();
  }

  /** Stores what was noted. Never rejects: a failure is reported and the notes stay. */
  flush(): Promise<void> {
    this.#storing ??= this.#store().finally(() => {
      this.#storing = undefined;
    });
    return this.#storing;
  }

  async #store(): Promise<void> {
    // Uses that come in meanwhile wait for the next time, or this would never end under load.
    const noted = [...this.#uses];
    try {
      for (let start = 0; start < noted.length; start += batchSecrets) {
        const batch = noted.slice(start, start + batchSecrets);
        await this.#options.store.recordLastUse(new Map(batch));
        this.#forget(batch);
      }
      if (noted.length > 0) this.#options.onStored?.();
    } catch (error) {
      this.#options.onFailed(error);
    }
  }

  /** Except what was used again while it was written. */
  #forget(stored: readonly (readonly [string, number])[]): void {
    for (const [publicId, at] of stored) {
      if (this.#uses.get(publicId) === at) this.#uses.delete(publicId);
    }
  }
}
