import type { KeyStore, RenewedSecret } from "../store/store.ts";

/**
 * Brings a secret's digest under the first pepper when it is used. One at a time, so that calls never
 * wait behind renewals for the database: what is passed over comes with its next use.
 */
export class DigestRenewal {
  readonly #store: Pick<KeyStore, "renewDigest">;
  #running: Promise<void> | undefined;

  constructor(store: Pick<KeyStore, "renewDigest">) {
    this.#store = store;
  }

  note(outdated: RenewedSecret): void {
    // Whoever follows the keys tells of a store that is away.
    this.#running ??= this.#store
      .renewDigest(outdated)
      .catch(() => undefined)
      .finally(() => {
        this.#running = undefined;
      });
  }

  /** Waits for the one that is being written. */
  async stop(): Promise<void> {
    await this.#running;
  }
}
