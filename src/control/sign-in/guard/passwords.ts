import { tooMany } from "./rate-window.ts";

/**
 * Argon2id with 19 MiB and two passes, the minimum of OWASP's Password Storage Cheat Sheet: about
 * 40 ms of a core. With more, sign-ins would compete with calls.
 */
const ownCost = { memoryCost: 19_456, timeCost: 2 };

/** The hash of a discarded random text, at the same cost; unknown users are checked against it. */
const nobody =
  "$argon2id$v=19$m=19456,t=2,p=1$3i10br+gTp+8C7MX3FMG4PaWdSqUSutr5bLUjfAYVm4$" +
  "hjcaNNNjWeTzlNCjwJewMakG9hb3YCNXxKZ8NxIVmtQ";

/** Passwords hashed at the same time, each on a thread of the runtime's pool. */
const parallelLimit = 2;
const waitingLimit = 64;

/** Hashes passwords and checks them, a few at a time, off the event loop. */
export class Passwords {
  readonly #waiting: (() => void)[] = [];
  readonly #cost: typeof ownCost;
  #running = 0;

  constructor(cost = ownCost) {
    this.#cost = cost;
  }

  /** Throws 429 when too many wait. */
  hash(password: string): Promise<string> {
    const cost = { algorithm: "argon2id", ...this.#cost } as const;
    return this.#inTurn(() => Bun.password.hash(password.normalize("NFC"), cost));
  }

  /**
   * Whether the password matches the hash. Without a hash, the same work returns false, so that the
   * time does not reveal who exists. Throws 429 when too many wait.
   */
  async verify(password: string, hash: string | undefined): Promise<boolean> {
    const isRight = await this.#inTurn(() =>
      Bun.password.verify(password.normalize("NFC"), hash ?? nobody),
    );
    return isRight && hash !== undefined;
  }

  async #inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.#running < parallelLimit) this.#running += 1;
    else if (this.#waiting.length >= waitingLimit) throw tooMany(1);
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await work();
    } finally {
      // The next in the queue takes over the place.
      const next = this.#waiting.shift();
      if (next === undefined) this.#running -= 1;
      else next();
    }
  }
}
