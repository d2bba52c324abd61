import type { FairQueue } from "../places/queue/fair-queue.ts";
import type { PlaceRequest } from "./place.ts";
import type { PoolTokens } from "./pool-tokens.ts";
import type { Waiter } from "./waiter.ts";

/** Picks the next call without a guarantee when tokens may be scarce. */
export class OpenTurns {
  readonly #queue: FairQueue<Waiter>;
  readonly #tokens: PoolTokens;
  #yieldMs = 0;
  #isUpstreamFull = false;

  constructor(queue: FairQueue<Waiter>, tokens: PoolTokens) {
    this.#queue = queue;
    this.#tokens = tokens;
  }

  /** How long the last call in turn has to wait to leave enough to lighter accounts. */
  get yieldMs(): number {
    return this.#yieldMs;
  }

  /** Whether the pool had room for the waiting calls, but their upstreams had none. */
  get isUpstreamFull(): boolean {
    return this.#isUpstreamFull;
  }

  /** Called when the pool itself has no room. */
  stop(): void {
    this.#isUpstreamFull = false;
  }

  /**
   * The call in turn that may enter, or the first of a lighter account if that call has to leave
   * tokens to lighter accounts.
   */
  next(openTokens: number | undefined, mayEnter: (waiter: Waiter) => boolean): Waiter | undefined {
    this.#yieldMs = 0;
    const first = this.#queue.firstOpen();
    const next = first === undefined || mayEnter(first) ? first : this.#queue.findAnyOpen(mayEnter);
    this.#isUpstreamFull = first !== undefined && next === undefined;
    if (next === undefined || openTokens === undefined) return next;
    const yieldMs = this.#tokens.yieldMs(next.request, openTokens);
    if (yieldMs === 0) return next;
    const light = this.#queue.findOpen(
      (waiter) => mayEnter(waiter) && this.#tokens.isLight(waiter.request, openTokens),
    );
    if (light === undefined) this.#yieldMs = yieldMs;
    return light;
  }

  /** Whether a newcomer of a lighter account may pass the queue; it never passes its own calls. */
  mayPass(request: PlaceRequest, openTokens: number | undefined): boolean {
    if (this.#yieldMs === 0 || openTokens === undefined) return false;
    const { capacityClass, accountId } = request;
    if (capacityClass === "provisioned" || this.#queue.hasOpen(accountId)) return false;
    return this.#tokens.isLight(request, openTokens);
  }
}
