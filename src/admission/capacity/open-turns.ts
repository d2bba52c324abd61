import type { FairQueue } from "./fair-queue.ts";
import type { PlaceRequest } from "./place.ts";
import type { PoolTokens } from "./pool-tokens.ts";
import type { Waiter } from "./waiter.ts";

/** Whose turn it is among calls without a guarantee, where tokens may be scarce. */
export class OpenTurns {
  readonly #queue: FairQueue<Waiter>;
  readonly #tokens: PoolTokens;
  #courtesyMs = 0;

  constructor(queue: FairQueue<Waiter>, tokens: PoolTokens) {
    this.#queue = queue;
    this.#tokens = tokens;
  }

  /** How long the one whose turn it was last had to wait to leave enough to lighter accounts. */
  get courtesyMs(): number {
    return this.#courtesyMs;
  }

  /** Whose turn it is; where that one has to leave some to lighter ones, the first of these. */
  next(openTokens: number | undefined): Waiter | undefined {
    this.#courtesyMs = 0;
    const first = this.#queue.firstOpen();
    if (first === undefined || openTokens === undefined) return first;
    const courtesyMs = this.#tokens.courtesyMs(first.request, openTokens);
    if (courtesyMs === 0) return first;
    const light = this.#queue.findOpen(({ request }) => this.#tokens.isLight(request, openTokens));
    if (light === undefined) this.#courtesyMs = courtesyMs;
    return light;
  }

  /** Whether a newcomer is one for whom those who wait leave something; never before its own. */
  mayPass(request: PlaceRequest, openTokens: number | undefined): boolean {
    if (this.#courtesyMs === 0 || openTokens === undefined) return false;
    const { capacityClass, accountId } = request;
    if (capacityClass === "provisioned" || this.#queue.hasOpen(accountId)) return false;
    return this.#tokens.isLight(request, openTokens);
  }
}
