import type { Clock } from "../../../domain/clock.ts";
import { addressGroup } from "./address-group.ts";
import { RateWindow } from "./rate-window.ts";

/** Valid credentials that are remembered; the least recently used one is dropped first. */
export const knownLimit = 20_000;
/** More lookups than refusals, so that new credentials at a refused address can still be read. */
const lookupsPerRefusal = 2;

/**
 * Limits, by address, how often the database is asked about credentials that were not valid lately,
 * so that made-up ones cause few reads. Recently valid credentials are not limited.
 */
export class LookupLimits {
  /** Digests of credentials, the least recently used one first. */
  readonly #known = new Set<string>();
  readonly #lookups: RateWindow;

  constructor(refusalsPerMinute: number, clock: Clock) {
    this.#lookups = new RateWindow(refusalsPerMinute * lookupsPerRefusal, clock);
  }

  /** Call before the database is asked. Throws 429. */
  count(credential: string, address: string): void {
    if (!this.#known.has(credential)) this.#lookups.count(addressGroup(address));
  }

  right(credential: string): void {
    this.#known.delete(credential);
    this.#known.add(credential);
    if (this.#known.size <= knownLimit) return;
    for (const oldest of this.#known) {
      this.#known.delete(oldest);
      return;
    }
  }

  /** Forgets a credential that is not valid, such as an expired one. */
  wrong(credential: string): void {
    this.#known.delete(credential);
  }
}
