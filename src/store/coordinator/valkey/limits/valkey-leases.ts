import type { Clock } from "../../../../domain/clock.ts";
import { partsOfWorker } from "../../../../domain/limits/lease-rules.ts";
import type { CountedRequest, LimitScope } from "../../../../domain/limits/limit-scope.ts";
import type { LimitRequest } from "../../../store.ts";
import type { LeaseAccount, LeaseId, LeaseRest } from "../../leases/lease-account.ts";
import { Leases, type CallUse, type Leased } from "../../leases/leases.ts";
import { ValkeyUnavailable } from "../connection/valkey-errors.ts";
import type { AccountUse } from "./account-use.ts";
import type { ValkeyLimits } from "./valkey-limits.ts";

export interface ValkeyLeasesOptions {
  readonly valkey: ValkeyLimits;
  readonly clock: Clock;
  readonly areWanted: boolean;
  /** How many workers share the limits. */
  readonly workers: () => number;
  /** Sends a correction, now or as soon as the server answers. */
  readonly note: (account: AccountUse, note: () => Promise<void>) => void;
  readonly onError: (error: unknown) => void;
}

interface GivenLease {
  readonly account: AccountUse;
  readonly scopes: readonly LimitScope[];
}

/** How long a request waits for leases that are in its way, each time that it asks again. */
const recallWaitsMs = [5, 20, 75];
export const mostRecalls = recallWaitsMs.length;

/**
 * What this worker may admit without asking Valkey, which has charged it already. Nothing is refused
 * because of it: Valkey tells all workers to give leases back, and the request asks again.
 */
export class ValkeyLeases {
  readonly #options: ValkeyLeasesOptions;
  readonly #leases: Leases;
  readonly #given = new Map<LeaseId, GivenLease>();
  #lastId = 0;
  #hasEnded = false;

  constructor(options: ValkeyLeasesOptions) {
    this.#options = options;
    const { clock, areWanted } = options;
    this.#leases = new Leases({ clock, areWanted, onEnded: (rests) => this.#giveBack(rests) });
  }

  count(scopes: readonly LimitScope[]): CountedRequest | undefined {
    return this.#leases.count(scopes);
  }

  /** Gives a request back to its lease; false if the lease has ended. */
  uncount(counted: CountedRequest): boolean {
    return this.#leases.uncount(counted);
  }

  acquire(request: LimitRequest): Leased | undefined {
    return this.#leases.acquire(request);
  }

  /** Undefined: nothing is leased for these scopes. */
  accountOf(request: Pick<LimitRequest, "scopes" | "counted">): LeaseAccount | undefined {
    return this.#leases.accountOf(request);
  }

  /** False for a call without a lease; see `Leases`. */
  charge(account: LeaseAccount | undefined, use: CallUse): boolean {
    return this.#leases.charge(account, use);
  }

  /** After an admission by Valkey: asks it for a lease, if these scopes are busy. */
  ask(account: AccountUse, of: LeaseAccount | undefined, scopes: readonly LimitScope[]): void {
    // An account without an epoch is about to be restored.
    if (this.#hasEnded || account.epoch === "") return;
    const wish = this.#leases.wish(of);
    if (wish === undefined) return;
    const { valkey, clock, workers, note, onError } = this.#options;
    const id = (this.#lastId += 1);
    const parts = partsOfWorker * Math.max(1, workers());
    const askedAtMs = clock.monotonic();
    const giveAllBack = (): void => note(account, () => valkey.giveBack(id, scopes, undefined));
    valkey
      .lease({ id, scopes, wish, parts }, account.epoch)
      .then((given) => {
        if (given === undefined) return of?.declined(clock.monotonic());
        if (this.#hasEnded || account.recalledAtMs >= askedAtMs) return giveAllBack();
        this.#given.set(id, { account, scopes });
        account.leases.add(id);
        this.#leases.granted({ id, account: wish.account, ...given });
      })
      .catch((error: unknown) => {
        if (!(error instanceof ValkeyUnavailable)) onError(error);
        // Valkey may have charged it.
        giveAllBack();
      })
      .finally(() => of?.answered());
  }

  /** Gives back what this worker has of an account, or is about to get. */
  recall(account: AccountUse): void {
    account.recalledAtMs = this.#options.clock.monotonic();
    this.#leases.recall([...account.leases]);
  }

  /** Resolves when leases that were in the way of a request may have been given back. */
  async recalled(account: AccountUse, times: number): Promise<void> {
    if (account.leases.size > 0) return this.recall(account);
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#options.clock.schedule(resolve, recallWaitsMs[times] ?? 0);
    await promise;
  }

  /** Gives everything back. */
  end(): void {
    this.#hasEnded = true;
    this.#leases.end();
  }

  /** Valkey has lost the account: there is nothing to give back. */
  lost({ leases }: AccountUse): void {
    for (const id of leases) this.#given.delete(id);
    this.#leases.recall([...leases]);
    leases.clear();
  }

  #giveBack(rests: readonly LeaseRest[]): void {
    const { valkey, note } = this.#options;
    for (const rest of rests) {
      const given = this.#given.get(rest.id);
      if (given === undefined) continue;
      const { account, scopes } = given;
      this.#given.delete(rest.id);
      account.leases.delete(rest.id);
      note(account, () => valkey.giveBack(rest.id, scopes, rest));
    }
  }
}
