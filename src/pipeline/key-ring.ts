import type { KeyStore, StoredSecret } from "../storage/store.ts";

export interface KeyRingOptions {
  readonly store: KeyStore;
  readonly onReloadFailed: (error: unknown) => void;
}

/**
 * The live secrets as authentication sees them: a snapshot that is replaced whole, never edited.
 * While the store cannot be read, the last snapshot holds: known keys keep working.
 */
export class KeyRing {
  readonly #options: KeyRingOptions;
  #secrets: ReadonlyMap<string, StoredSecret> = new Map();
  #version: number | undefined;
  #timer: ReturnType<typeof setInterval> | undefined;
  #isReloading = false;

  constructor(options: KeyRingOptions) {
    this.#options = options;
  }

  get secrets(): ReadonlyMap<string, StoredSecret> {
    return this.#secrets;
  }

  /** False until the keys were read once. */
  get isLoaded(): boolean {
    return this.#version !== undefined;
  }

  /** Reads all secrets now. Call it after a change made by this process. */
  async reload(): Promise<void> {
    const version = await this.#options.store.version();
    const stored = await this.#options.store.loadSecrets();
    this.#secrets = new Map(stored.map((entry) => [entry.secret.publicId, entry]));
    this.#version = version;
  }

  /** Looks every `intervalMs` whether another process has changed the keys. */
  follow(intervalMs: number): void {
    this.#timer = setInterval(() => void this.#reloadIfChanged(), intervalMs);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  async #reloadIfChanged(): Promise<void> {
    if (this.#isReloading) return;
    this.#isReloading = true;
    try {
      const version = await this.#options.store.version();
      if (version !== this.#version) await this.reload();
    } catch (error) {
      this.#options.onReloadFailed(error);
    } finally {
      this.#isReloading = false;
    }
  }
}
