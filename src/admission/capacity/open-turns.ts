import type { FairQueue } from "../places/queue/fair-queue.ts";
import type { PlaceRequest } from "./place.ts";
import type { PoolTokens } from "./tokens/pool-tokens.ts";
import type { QueueTurn } from "./waiter.ts";

/** Picks the next call without a guarantee when tokens may be scarce. */
export class OpenTurns {
  readonly #queue: FairQueue<QueueTurn>;
  readonly #tokens: PoolTokens;
  #yieldMs = 0;
  #isElsewhereFull = false;

  constructor(queue: FairQueue<QueueTurn>, tokens: PoolTokens) {
    this.#queue = queue;
    this.#tokens = tokens;
  }

  /** How long the last call in turn must wait so that enough is left for lighter accounts. */
  get yieldMs(): number {
    return this.#yieldMs;
  }

  /** Whether the pool had room for the waiting calls, but their upstreams or targets had none. */
  get isElsewhereFull(): boolean {
    return this.#isElsewhereFull;
  }

  /** Called when the pool itself has no room. */
  stop(): void {
    this.#isElsewhereFull = false;
  }

  /**
   * The call whose turn it is, or, if that call must leave tokens to lighter accounts, the first
   * call of such an account.
   */
  next(
    openTokens: number | undefined,
    mayEnter: (turn: QueueTurn) => boolean,
  ): QueueTurn | undefined {
    this.#yieldMs = 0;
    const first = this.#queue.firstOpen();
    const next = first === undefined || mayEnter(first) ? first : this.#queue.findAnyOpen(mayEnter);
    this.#isElsewhereFull = first !== undefined && next === undefined;
    if (next === undefined || openTokens === undefined) return next;
    const yieldMs = this.#tokens.yieldMs(next, openTokens);
    if (yieldMs === 0) return next;
    const light = this.#queue.findOpen(
      (turn) => mayEnter(turn) && this.#tokens.isLight(turn, openTokens),
    );
    if (light === undefined) this.#yieldMs = yieldMs;
    return light;
  }

  /** Whether a newcomer of a lighter account may pass the queue; it never passes its own calls. */
  mayPass(request: PlaceRequest, openTokens: number | undefined): boolean {
    if (this.#yieldMs === 0 || openTokens === undefined) return false;
    if (this.#queue.hasOpen(request.accountId)) return false;
    return this.#tokens.isLight(request, openTokens);
  }
}
