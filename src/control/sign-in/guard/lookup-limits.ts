import type { Clock } from "../../../domain/clock.ts";
import { addressGroup } from "./address-group.ts";
import { RateWindow } from "./rate-window.ts";

/** Credentials that are remembered as right; the one that was silent longest goes first. */
export const knownLimit = 20_000;
/** More than are refused before an address is: others there, seen for the first time, come in. */
const lookupsPerRefusal = 2;

/**
 * Limits how often the database is asked about credentials that nobody has come in with lately:
 * what is made up costs an address a few reads a minute and no more, and whoever is known there
 * still comes in.
 */
export class LookupLimits {
  /** By a digest of the credential, the one silent longest first. */
  readonly #known = new Set<string>();
  readonly #lookups: RateWindow;

  constructor(refusalsPerMinute: number, clock: Clock) {
    this.#lookups = new RateWindow(refusalsPerMinute * lookupsPerRefusal, clock);
  }

  /** To be called before the database is asked. Throws 429. */
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

  /** Such as after its end: from now on it is as good as made up. */
  wrong(credential: string): void {
    this.#known.delete(credential);
  }
}
