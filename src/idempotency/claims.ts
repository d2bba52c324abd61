import type { Clock } from "../domain/clock.ts";
import { GatewayError } from "../domain/errors/gateway-error.ts";
import type { IdempotencySettings } from "../domain/settings.ts";
import { abortable, wait } from "../domain/waiting/wait.ts";
import { EndSource } from "../domain/waiting/end-signal.ts";
import type { Call } from "../snapshot/call.ts";
import type { CallClaims, ClaimAnswer, HeldClaim } from "../store/store.ts";
import type { KeptAnswer } from "./answer.ts";
import type { KeptAnswers } from "./kept-answers.ts";
import { answerNotKept, answersUnavailable, keyInUse, keyReused } from "./refusals.ts";
import type { AllRequestNames } from "./request-names.ts";

export interface ClaimsServices {
  readonly store: CallClaims;
  readonly clock: Pick<Clock, "schedule" | "now">;
  readonly settings: () => IdempotencySettings;
  readonly kept: Pick<KeptAnswers, "findUnsaved" | "hasRoom" | "open">;
  /** Ends the wait of a call whose key ends, whose deadline passes, and at shutdown. */
  readonly running: {
    watch<Watched extends Call>(call: Watched): Watched;
    leave(call: { readonly id: string; readonly keyId: string }): void;
  };
}

/** The right to make a call. Either of its ends comes first, and the other then does nothing. */
export interface Claim extends HeldClaim {
  /**
   * The call has an answer; undefined: one that is too large. One that is not stored yet keeps the
   * claim until `Claims.saved`.
   */
  answered(answer: KeptAnswer | undefined, isStored: boolean): void;
  /** The call has no answer: the next repeat makes it. */
  release(): void;
}

export type Taken = { readonly claim: Claim } | { readonly answer: KeptAnswer };

/** How a call of this process ended; undefined: without an answer. */
type Outcome = KeptAnswer | "too large" | undefined;

interface OwnCall {
  readonly requestDigest: string;
  readonly ended: Promise<Outcome>;
  end(outcome: Outcome): void;
}

/** The wait for a call that still runs. */
const waitMs = 30_000;
/** Pauses between two looks at a claim of another process. */
const firstPauseMs = 50;
const longestPauseMs = 1_000;
/** Often enough for several tries before a claim is over (`mostDoubts`). */
const confirmMs = 2_000;
/** Claims in one statement. */
const confirmedAtOnce = 500;

/**
 * Which calls this process makes. Repeats in one process wait for one of them, which alone asks the
 * store, so the number of repeats does not matter to it.
 */
export class Claims {
  readonly #services: ClaimsServices;
  readonly #own = new Map<string, OwnCall>();
  /** What this process confirms, by holder. */
  readonly #held = new Map<string, HeldClaim>();
  readonly #releasing = new Set<Promise<void>>();
  readonly #waiters = new Waiters();
  #cancelConfirm: (() => void) | undefined;

  constructor(services: ClaimsServices) {
    this.#services = services;
  }

  /**
   * Resolves to the claim of the call, or to its answer. Throws 409 for another request, for an
   * answer that was not kept, or if the first call runs on for too long; 503 without the store.
   */
  async take(names: AllRequestNames, call: Call): Promise<Taken> {
    const { kept } = this.#services;
    using patience = new Patience(call, this.#services, this.#waiters);
    for (;;) {
      const unsaved = kept.findUnsaved(names.id);
      if (unsaved !== undefined) return { answer: kept.open(unsaved, names) };
      const other = this.#own.get(names.id);
      // There is no await up to `#enter`, so two calls never both begin.
      if (other === undefined) return await this.#begin(names, patience);
      if (other.requestDigest !== names.requestDigest) throw keyReused();
      const outcome = await patience.until(other.ended);
      if (outcome === "too large") throw answerNotKept();
      if (outcome !== undefined) return { answer: outcome };
    }
  }

  /** The answer that kept this holder's claim is stored, or nobody may get it any more. */
  saved(holder: string): void {
    this.#held.delete(holder);
  }

  /** Resolves when no claim is being released. Call it when no call is running. */
  async close(): Promise<void> {
    this.#cancelConfirm?.();
    await Promise.all(this.#releasing);
  }

  async #begin(names: AllRequestNames, patience: Patience): Promise<Taken> {
    if (!this.#services.kept.hasRoom) throw answersUnavailable();
    const own = this.#enter(names);
    try {
      for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(2 * pauseMs, longestPauseMs)) {
        const answer = await this.#ask(names, patience);
        if (answer.kind === "yours") {
          return { claim: this.#hold({ id: names.id, holder: patience.holder }, own) };
        }
        if (answer.kind === "reused") throw keyReused();
        if (answer.kind === "kept") {
          const opened = this.#services.kept.open(answer.reply, names);
          own.end(opened);
          return { answer: opened };
        }
        await patience.pause(pauseMs);
      }
    } catch (error) {
      const isTooLarge = error instanceof GatewayError && error.code === "answer_not_kept";
      own.end(isTooLarge ? "too large" : undefined);
      throw error;
    }
  }

  #enter({ id, requestDigest }: AllRequestNames): OwnCall {
    const { promise: ended, resolve } = Promise.withResolvers<Outcome>();
    const own: OwnCall = {
      requestDigest,
      ended,
      end: (outcome) => {
        if (this.#own.get(id) === own) this.#own.delete(id);
        resolve(outcome);
      },
    };
    this.#own.set(id, own);
    return own;
  }

  async #ask(names: AllRequestNames, { holder, signal }: Patience): Promise<ClaimAnswer> {
    const { store, clock, settings } = this.#services;
    const { id, requestDigest } = names;
    const asked = store
      .claim({
        id,
        holder,
        requestDigest,
        olderIds: names.older.map((older) => older.id),
        keptAfter: clock.now() - settings().keepMs,
      })
      .catch((error: unknown) => {
        throw answersUnavailable(error);
      });
    try {
      return await abortable(asked, signal);
    } catch (error) {
      // Whoever has left, or heard nothing, may have got the claim nevertheless.
      this.#giveBack(asked.catch(() => undefined).then(() => store.release({ id, holder })));
      throw error;
    }
  }

  #hold(held: HeldClaim, own: OwnCall): Claim {
    let hasEnded = false;
    this.#held.set(held.holder, held);
    this.#confirmLater();
    return {
      ...held,
      answered: (answer, isStored) => {
        if (hasEnded) return;
        hasEnded = true;
        if (isStored) this.#held.delete(held.holder);
        own.end(answer ?? "too large");
      },
      release: () => {
        if (hasEnded) return;
        hasEnded = true;
        this.#held.delete(held.holder);
        const { store } = this.#services;
        this.#giveBack(store.release(held).finally(() => own.end(undefined)));
      },
    };
  }

  /** A claim that cannot be given back is over soon, as nobody confirms it. */
  #giveBack(work: Promise<void>): void {
    const release = work.catch(() => undefined).finally(() => this.#releasing.delete(release));
    this.#releasing.add(release);
  }

  #confirmLater(): void {
    this.#cancelConfirm ??= this.#services.clock.schedule(() => {
      void this.#confirm().finally(() => {
        this.#cancelConfirm = undefined;
        if (this.#held.size > 0) this.#confirmLater();
      });
    }, confirmMs);
  }

  async #confirm(): Promise<void> {
    const held = [...this.#held.values()];
    for (let start = 0; start < held.length; start += confirmedAtOnce) {
      const some = held.slice(start, start + confirmedAtOnce);
      await this.#services.store.confirm(some).catch(() => undefined);
    }
  }
}

/** The calls that wait, of which one account may not be all. */
class Waiters {
  readonly #byAccount = new Map<string, number>();
  #all = 0;

  tryEnter(accountId: string, limit: number): boolean {
    const own = this.#byAccount.get(accountId) ?? 0;
    if (this.#all >= limit || own >= limit / 2) return false;
    this.#all += 1;
    this.#byAccount.set(accountId, own + 1);
    return true;
  }

  leave(accountId: string): void {
    this.#all -= 1;
    const own = (this.#byAccount.get(accountId) ?? 0) - 1;
    if (own > 0) this.#byAccount.set(accountId, own);
    else this.#byAccount.delete(accountId);
  }
}

/** How long one call waits: until it is answered, ends, or has waited for the longest time. */
class Patience implements Disposable {
  readonly #call: Call;
  readonly #services: ClaimsServices;
  readonly #waiters: Waiters;
  #end: EndSource | undefined;
  #dispose = (): void => undefined;

  constructor(call: Call, services: ClaimsServices, waiters: Waiters) {
    this.#call = call;
    this.#services = services;
    this.#waiters = waiters;
  }

  /** Names the claim. */
  get holder(): string {
    return this.#call.id;
  }

  get signal(): Call["signal"] {
    return this.#end ?? this.#call.signal;
  }

  /** Throws the reason for which the wait ended. */
  async until<Value>(ended: Promise<Value>): Promise<Value> {
    return abortable(ended, this.#begin());
  }

  async pause(durationMs: number): Promise<void> {
    const end = this.#begin();
    await wait(durationMs, end, this.#services.clock);
    if (end.aborted) throw end.reason;
  }

  [Symbol.dispose](): void {
    this.#dispose();
  }

  #begin(): EndSource {
    if (this.#end !== undefined) return this.#end;
    const { running, clock, settings } = this.#services;
    const { id, caller } = this.#call;
    const { id: keyId, accountId } = caller.key;
    if (!this.#waiters.tryEnter(accountId, settings().waitingLimit)) throw keyInUse();
    const end = new EndSource();
    this.#end = end;
    const cancel = clock.schedule(() => end.abort(keyInUse()), waitMs);
    this.#dispose = () => {
      cancel();
      this.#waiters.leave(accountId);
      running.leave({ id, keyId });
    };
    const { signal } = running.watch(this.#call);
    if (signal.aborted) end.abort(signal.reason);
    else signal.addEventListener("abort", () => end.abort(signal.reason), { once: true });
    return end;
  }
}
