import type { FairQueue } from "../places/queue/fair-queue.ts";
import type { PlaceRequest } from "./place.ts";
import type { PoolTokens } from "./pool-tokens.ts";
import type { Waiter } from "./waiter.ts";

/** Whose turn it is among calls without a guarantee, where tokens may be scarce. */
export class OpenTurns {
  readonly #queue: FairQueue<Waiter>;
  readonly #tokens: PoolTokens;
  #courtesyMs = 0;
  #isHeldUp = false;

  constructor(queue: FairQueue<Waiter>, tokens: PoolTokens) {
    this.#queue = queue;
    this.#tokens = tokens;
  }

  /** How long the one whose turn it was last had to wait to leave enough to lighter accounts. */
  get courtesyMs(): number {
    return this.#courtesyMs;
  }

  /** Whether the pool had room for those who wait, and their upstreams had none. */
  get isHeldUp(): boolean {
    return this.#isHeldUp;
  }

  /** Nobody's turn: the pool itself has no room. */
  stop(): void {
    this.#isHeldUp = false;
  }

  /**
   * Whose turn it is of those who may enter; where that one has to leave some to lighter ones, the
   * first of these.
   */
  next(openTokens: number | undefined, mayEnter: (waiter: Waiter) => boolean): Waiter | undefined {
    this.#courtesyMs = 0;
    const first = this.#queue.firstOpen();
    const next = first === undefined || mayEnter(first) ? first : this.#queue.findAnyOpen(mayEnter);
    this.#isHeldUp = first !== undefined && next === undefined;
    if (next === undefined || openTokens === undefined) return next;
    const courtesyMs = this.#tokens.courtesyMs(next.request, openTokens);
    if (courtesyMs === 0) return next;
    const light = this.#queue.findOpen(
      (waiter) => mayEnter(waiter) && this.#tokens.isLight(waiter.request, openTokens),
    );
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
