import { AgingMap } from "../../../domain/limits/aging-map.ts";
import { partsOfWorker, pressedSlots } from "../../../domain/limits/lease-rules.ts";
import type { LimitScope } from "../../../domain/limits/limit-scope.ts";
import { slotMs } from "../../../domain/limits/slots.ts";
import type { LeaseId } from "../../../store/coordinator/leases/lease-account.ts";
import type { Lease } from "../../../store/coordinator/memory/lease.ts";
import type { MemoryLimitStore } from "../../../store/coordinator/memory/limit-store.ts";
import type { LimitDecision, RefusedByLimit } from "../../../store/store.ts";
import type { WireLease, WireRest } from "../../link/lease-wire.ts";
import { stateToWire, type WireWish } from "../../link/limit-wire.ts";
import type { MemberLink } from "./member.ts";

export interface LeasesOptions {
  readonly store: Pick<MemoryLimitStore, "lease" | "open" | "giveBack" | "slot">;
  /** Common time. */
  readonly now: () => number;
  readonly workers: () => number;
}

/** The lease that a worker asks for together with an admitted acquisition. */
export interface Wish {
  readonly scopes: readonly LimitScope[];
  /** Undefined: none. */
  readonly wanted: WireWish | undefined;
  readonly state: LimitDecision["state"];
}

interface GivenLease {
  readonly id: LeaseId;
  readonly lease: Lease;
  readonly holder: WorkerLeases;
  readonly scopeIds: ReadonlySet<string>;
  recall: Promise<void> | undefined;
}

interface Asked<Decision, Answer> {
  readonly decide: () => Decision;
  /** Called with the final decision, in the turn in which it was made. */
  readonly answer: (decision: Decision) => Answer;
}

/** Longest wait for a worker to return leases. */
const recallLimitMs = 250;
/** Decisions that wait for leases; further ones are refused at once. */
const waitingLimit = 10_000;

/**
 * What control has charged in advance for calls that workers admit by themselves in the slot of the
 * decision. Nothing is refused because of it: before a refusal, all leases of the scope are
 * recalled.
 */
export class Leases {
  readonly #options: LeasesOptions;
  /** Leases that can be recalled, by each scope id. */
  readonly #byScope = new Map<string, Set<GivenLease>>();
  /** Scopes that get no leases, with the last slot for which that holds. */
  readonly #pressed: AgingMap<number>;
  #waiting = 0;

  constructor(options: LeasesOptions) {
    this.#options = options;
    this.#pressed = new AgingMap(pressedSlots, options.store.slot);
  }

  /** The leases of one worker. `link` is undefined until it is open. */
  ofWorker(link: () => LeaseLink | undefined): WorkerLeases {
    return new WorkerLeases(this, this.#options.store, link);
  }

  /** Decides, and decides again when leases that were in the way have been returned. */
  decide<Decision extends LimitResult, Answer>(
    holder: WorkerLeases,
    asked: Asked<Decision, Answer>,
  ): Answer | Promise<Answer> {
    const decision = asked.decide();
    const recall = decision.isAdmitted ? undefined : this.#recallFor(decision);
    if (recall === undefined) return asked.answer(decision);
    this.#waiting += 1;
    return recall.then(() => {
      this.#waiting -= 1;
      // Nothing is charged for a worker that has ended.
      return holder.hasEnded ? asked.answer(decision) : this.decide(holder, asked);
    });
  }

  grant(holder: WorkerLeases, { scopes, wanted, state }: Wish): void {
    const { store, now, workers } = this.#options;
    if (wanted === undefined || scopes.some(({ id }) => this.#isPressed(id))) return;
    const [account, requests, tokens, overrun] = wanted;
    const lease = store.lease(scopes, { requests, tokens, overrun }, partsOfWorker * workers());
    if (lease === undefined) return;
    const given = holder.add(lease, new Set(scopes.map(({ id }) => id)));
    for (const id of given.scopeIds) {
      const ofScope = this.#byScope.get(id);
      if (ofScope === undefined) this.#byScope.set(id, new Set([given]));
      else ofScope.add(given);
    }
    const { slot, amounts } = lease;
    const endsInMs = Math.floor((slot + 1) * slotMs - now());
    const charged = [amounts.requests, amounts.tokens, amounts.overrun] as const;
    const left = stateToWire({
      ...state,
      remainingRequests: state.remainingRequests - amounts.requests,
      remainingTokens: state.remainingTokens - amounts.tokens,
    });
    holder.tell([given.id, account, slot, endsInMs, ...charged, left]);
  }

  /** The lease was returned, or is no longer waited for. */
  forget(given: GivenLease): void {
    for (const id of given.scopeIds) {
      const ofScope = this.#byScope.get(id);
      ofScope?.delete(given);
      if (ofScope?.size === 0) this.#byScope.delete(id);
    }
  }

  /** Undefined: no lease is in the way, or too many decisions wait. */
  #recallFor({ scopeId, retryAfterMs }: RefusedByLimit): Promise<unknown> | undefined {
    const leases = this.#byScope.get(scopeId);
    // No lease is in the way of a request that never fits.
    if (leases === undefined || retryAfterMs === undefined) return undefined;
    if (this.#waiting >= waitingLimit) return undefined;
    const { slot } = this.#options.store;
    this.#pressed.advance(slot);
    this.#pressed.set(scopeId, slot + pressedSlots - 1);
    const byHolder = Map.groupBy(leases, ({ holder }) => holder);
    return Promise.all(Array.from(byHolder, ([holder, ofHolder]) => holder.recall(ofHolder)));
  }

  #isPressed(scopeId: string): boolean {
    return this.#options.store.slot <= (this.#pressed.peek(scopeId) ?? Number.NEGATIVE_INFINITY);
  }
}

type LimitResult = { readonly isAdmitted: true } | RefusedByLimit;
export type LeaseLink = Pick<MemberLink, "ask" | "tell">;

/** The decisions for one worker, and its leases. */
export class WorkerLeases {
  readonly #all: Leases;
  readonly #store: LeasesOptions["store"];
  readonly #link: () => LeaseLink | undefined;
  /** Leases of which nothing was returned yet. */
  readonly #leases = new Map<LeaseId, GivenLease>();
  #lastId = 0;
  #hasEnded = false;

  constructor(all: Leases, store: LeasesOptions["store"], link: () => LeaseLink | undefined) {
    this.#all = all;
    this.#store = store;
    this.#link = link;
  }

  /** Whether the worker has ended. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  decide<Decision extends LimitResult, Answer>(
    asked: Asked<Decision, Answer>,
  ): Answer | Promise<Answer> {
    return this.#all.decide(this, asked);
  }

  /** Call after the decision about the acquisition, in the same turn. */
  grant(wish: Wish): void {
    this.#all.grant(this, wish);
  }

  add(lease: Lease, scopeIds: ReadonlySet<string>): GivenLease {
    this.#lastId += 1;
    const given = { id: this.#lastId, lease, holder: this, scopeIds, recall: undefined };
    this.#leases.set(given.id, given);
    return given;
  }

  tell(lease: WireLease): void {
    this.#link()?.tell("limits.leased", lease);
  }

  /** Calls `opened` with each call that was admitted under these leases and still runs. */
  returned(rests: readonly WireRest[], opened: (callId: string) => void): void {
    for (const [id, requests, tokens, overrun, open] of rests) {
      const given = this.#leases.get(id);
      if (given === undefined) continue;
      this.#remove(given);
      for (const [callId, ofCall, overrunOfCall] of open) {
        this.#store.open(given.lease, { callId, tokens: ofCall, overrun: overrunOfCall });
        opened(callId);
      }
      this.#store.giveBack(given.lease, { requests, tokens, overrun });
    }
  }

  /** Resolves when the worker has returned these leases, or does not answer. */
  async recall(leases: readonly GivenLease[]): Promise<void> {
    const unasked = leases.filter(({ recall }) => recall === undefined);
    if (unasked.length > 0) {
      const recall = this.#askBack(unasked);
      for (const given of unasked) given.recall = recall;
    }
    for (const { recall } of leases) await recall;
  }

  /**
   * The worker has ended. Its leases stay charged, because it may have admitted calls under them.
   */
  end(): void {
    this.#hasEnded = true;
    for (const given of this.#leases.values()) {
      this.#remove(given);
      const { overrun } = given.lease.amounts;
      this.#store.giveBack(given.lease, { requests: 0, tokens: 0, overrun });
    }
  }

  async #askBack(leases: readonly GivenLease[]): Promise<void> {
    const ids = leases.map(({ id }) => id);
    try {
      await this.#link()?.ask("limits.recall", ids, recallLimitMs);
    } catch {
      // The worker hangs, or has ended.
    }
    // What a hanging worker returns later is still accepted.
    for (const given of leases) this.#all.forget(given);
  }

  #remove(given: GivenLease): void {
    this.#leases.delete(given.id);
    this.#all.forget(given);
  }
}
