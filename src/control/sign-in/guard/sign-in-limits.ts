import type { Clock } from "../../../domain/clock.ts";
import { addressGroup, forgetOldest, RateWindow, tooMany } from "./rate-window.ts";

/** Several users may share an address, for example in an office. */
const usersPerAddress = 5;
const firstWaitMs = 30_000;
const longestWaitMs = 900_000;
/** Wrong attempts are forgotten after this time without another; longer than any wait. */
const forgetMs = 3_600_000;

interface Bucket {
  failures: number;
  waitUntil: number;
  triedAt: number;
}

interface Charge {
  readonly name: string;
  readonly freeTries: number;
}

/**
 * Delays password attempts, longer each time, by address and by address and user. Attempts count
 * before their password is compared, so that concurrent ones wait too. Other attempts to sign in
 * are counted by address.
 */
export class SignInLimits {
  readonly #freeTries: number;
  readonly #clock: Clock;
  readonly #addresses: RateWindow;
  /** The least recently used one comes first. */
  readonly #buckets = new Map<string, Bucket>();

  /** `freeTries`: wrong passwords for one user from one address before the first wait. */
  constructor(freeTries: number, clock: Clock) {
    this.#freeTries = freeTries;
    this.#clock = clock;
    this.#addresses = new RateWindow(freeTries * usersPerAddress, clock);
  }

  get size(): number {
    return this.#buckets.size;
  }

  /** Counts an attempt without a password, whether it succeeds or not. Throws 429. */
  countAddress(address: string): void {
    this.#addresses.count(addressGroup(address));
  }

  /** Counts an attempt as wrong; the answer takes that back, for a right password. Throws 429. */
  takePassword(address: string, email: string): () => void {
    const now = this.#clock.monotonic();
    const group = addressGroup(address);
    const user: Charge = { name: nameOf(address, email), freeTries: this.#freeTries };
    const all: Charge = { name: group, freeTries: this.#freeTries * usersPerAddress };
    const waitMs = Math.max(this.#waitMs(user, now), this.#waitMs(all, now));
    if (waitMs > 0) throw tooMany(Math.ceil(waitMs / 1000));
    for (const charge of [user, all]) this.#charge(charge, now);
    return () => {
      this.#buckets.delete(user.name);
      this.#takeBack(all);
    };
  }

  /** For a user who has a new password: wrong ones from this address count no more. */
  forget(address: string, email: string): void {
    this.#buckets.delete(nameOf(address, email));
  }

  #waitMs({ name }: Charge, now: number): number {
    return (this.#buckets.get(name)?.waitUntil ?? 0) - now;
  }

  #charge({ name, freeTries }: Charge, now: number): void {
    const before = this.#buckets.get(name);
    const isForgotten = before === undefined || now - before.triedAt >= forgetMs;
    const failures = (isForgotten ? 0 : before.failures) + 1;
    const waits = Math.min(failures - freeTries, 30);
    const waitMs = waits < 0 ? 0 : Math.min(longestWaitMs, firstWaitMs * 2 ** waits);
    this.#buckets.delete(name);
    this.#buckets.set(name, { failures, waitUntil: now + waitMs, triedAt: now });
    forgetOldest(this.#buckets, ({ triedAt }) => now - triedAt >= forgetMs);
  }

  #takeBack({ name, freeTries }: Charge): void {
    const bucket = this.#buckets.get(name);
    if (bucket === undefined) return;
    bucket.failures = Math.max(0, bucket.failures - 1);
    if (bucket.failures < freeTries) bucket.waitUntil = 0;
  }
}

/** Of a user at an address. */
function nameOf(address: string, email: string): string {
  return JSON.stringify([addressGroup(address), email]);
}
