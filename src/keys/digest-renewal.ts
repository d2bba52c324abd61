import type { KeyStore, RenewedSecret } from "../store/store.ts";

/**
 * Moves a secret's digest to the first pepper when it is used. Only one runs at a time, so that
 * calls never wait for the database behind renewals; a skipped secret is renewed at its next use.
 */
export class DigestRenewal {
  readonly #store: Pick<KeyStore, "renewDigest">;
  #running: Promise<void> | undefined;

  constructor(store: Pick<KeyStore, "renewDigest">) {
    this.#store = store;
  }

  note(outdated: RenewedSecret): void {
    // The poll of the key ring reports an unavailable store.
    this.#running ??= this.#store
      .renewDigest(outdated)
      .catch(() => undefined)
      .finally(() => {
        this.#running = undefined;
      });
  }

  /** Waits for the running renewal. */
  async stop(): Promise<void> {
    await this.#running;
  }
}
