import type { Clock } from "../../../domain/clock.ts";
import { addressGroup } from "./address-group.ts";
import { tooMany } from "./rate-window.ts";

/** Most buckets at a time; the least recently used one is dropped first. */
export const bucketsLimit = 20_000;

/** Several users may share an address, for example in an office. */
const usersPerAddress = 5;
/** Known users get this many times the free attempts. */
const knownFactor = 4;
const firstWaitMs = 30_000;
const longestWaitMs = 900_000;
/** Short, because the attempts of others at the address must not lock a known user out for long. */
const longestWaitOfKnownMs = 60_000;
/** Wrong attempts are forgotten after this time without another; longer than any wait. */
const forgetMs = 3_600_000;

export interface PasswordTry {
  readonly address: string;
  readonly email: string;
  /** What identifies a known user, such as a browser; undefined: unknown. */
  readonly knownAs: string | undefined;
}

/** A counted attempt, whose outcome may be reported once. */
export interface CountedTry {
  /** The password was right: the user's wrong attempts are forgotten. */
  right(): void;
  /** The password was not compared: the attempt does not count. */
  notTried(): void;
}

interface Bucket {
  failures: number;
  /** Further attempts are refused until this time. */
  waitUntil: number;
  triedAt: number;
}

interface Charge {
  readonly name: string;
  readonly freeTries: number;
  readonly longestWaitMs: number;
}

/**
 * Delays password attempts, longer each time, by address and by address and user. A known user has
 * a separate bucket, in which attempts from elsewhere do not count. Attempts count before their
 * password is compared, so that concurrent ones wait too.
 */
export class SignInThrottle {
  readonly #freeTries: number;
  readonly #clock: Pick<Clock, "monotonic">;
  /** The least recently used one comes first. */
  readonly #buckets = new Map<string, Bucket>();

  /** `freeTries`: wrong passwords for one user from one address before the first wait. */
  constructor(freeTries: number, clock: Pick<Clock, "monotonic">) {
    this.#freeTries = freeTries;
    this.#clock = clock;
  }

  get size(): number {
    return this.#buckets.size;
  }

  /** Counts an attempt as wrong until its outcome is reported. Throws 429. */
  take(tried: PasswordTry): CountedTry {
    const now = this.#clock.monotonic();
    const charges = this.#chargesOf(tried);
    const waitMs = Math.max(...charges.map(({ name }) => this.#waitMs(name, now)));
    if (waitMs > 0) throw tooMany(Math.ceil(waitMs / 1000));
    for (const charge of charges) this.#charge(charge, now);
    const takeBack = (): void => charges.forEach((charge) => this.#takeBack(charge));
    return {
      notTried: takeBack,
      right: () => {
        takeBack();
        this.#buckets.delete(charges[0].name);
      },
    };
  }

  /** The first charge is that of the user. */
  #chargesOf({ address, email, knownAs }: PasswordTry): readonly [Charge, ...Charge[]] {
    if (knownAs !== undefined) {
      const freeTries = this.#freeTries * knownFactor;
      const name = JSON.stringify(["known", knownAs]);
      return [{ name, freeTries, longestWaitMs: longestWaitOfKnownMs }];
    }
    const group = addressGroup(address);
    const pair = JSON.stringify(["pair", group, email]);
    const all = JSON.stringify(["address", group]);
    const freeTries = this.#freeTries;
    return [
      { name: pair, freeTries, longestWaitMs },
      { name: all, freeTries: freeTries * usersPerAddress, longestWaitMs },
    ];
  }

  #waitMs(name: string, now: number): number {
    return (this.#buckets.get(name)?.waitUntil ?? 0) - now;
  }

  #charge({ name, freeTries, longestWaitMs: longest }: Charge, now: number): void {
    const before = this.#buckets.get(name);
    const isForgotten = before === undefined || now - before.triedAt >= forgetMs;
    const failures = (isForgotten ? 0 : before.failures) + 1;
    const waits = Math.min(failures - freeTries, 30);
    const waitMs = waits < 0 ? 0 : Math.min(longest, firstWaitMs * 2 ** waits);
    this.#buckets.delete(name);
    this.#buckets.set(name, { failures, waitUntil: now + waitMs, triedAt: now });
    this.#forgetSome(now);
  }

  #takeBack({ name, freeTries }: Charge): void {
    const bucket = this.#buckets.get(name);
    if (bucket === undefined) return;
    bucket.failures = Math.max(0, bucket.failures - 1);
    if (bucket.failures < freeTries) bucket.waitUntil = 0;
  }

  /**
   * Checks the two oldest buckets at each attempt, so that the map shrinks when there are fewer
   * attempts.
   */
  #forgetSome(now: number): void {
    let looks = 2;
    for (const [name, { triedAt }] of this.#buckets) {
      looks -= 1;
      if (now - triedAt < forgetMs && this.#buckets.size <= bucketsLimit) return;
      this.#buckets.delete(name);
      if (looks === 0) return;
    }
  }
}
