import type { Clock } from "../domain/clock.ts";
import type { IdempotencySettings } from "../domain/settings.ts";
import type { EndSignal } from "../domain/waiting/end-signal.ts";
import { abortable, wait } from "../domain/waiting/wait.ts";
import type { Call } from "../snapshot/call.ts";
import type { CallClaims, ClaimAnswer, HeldClaim } from "../store/store.ts";
import type { KeptAnswer } from "./answer.ts";
import type { KeptAnswers } from "./kept-answers.ts";
import { answersUnavailable, keyInUse, keyReused } from "./refusals.ts";
import type { AllRequestNames } from "./request-names.ts";

export interface ClaimsServices {
  readonly store: CallClaims;
  readonly clock: Pick<Clock, "schedule" | "now" | "monotonic">;
  readonly settings: () => IdempotencySettings;
  readonly kept: Pick<KeptAnswers, "hasRoom" | "open">;
  /** Ends the wait of a call whose key ends, whose deadline passes, and at shutdown. */
  readonly running: {
    watch(call: Call): void;
    leave(id: string): void;
  };
}

/** The right to make a call. Either of its ends comes first, and the other then does nothing. */
export interface Claim extends HeldClaim {
  /** The answer is stored, which ended the claim there, or nobody may get it any more. */
  saved(): void;
  /** The call has no answer: the next repeat makes it. */
  release(): void;
}

export type Taken = { readonly claim: Claim } | { readonly answer: KeptAnswer };

/** The wait for a call that still runs. */
const waitMs = 30_000;
/** Pauses between two looks at a claim. */
const firstPauseMs = 50;
const longestPauseMs = 1_000;
/** Often enough for several tries before a claim is over (`mostDoubts`). */
const confirmMs = 2_000;

/** The calls that this process makes. The store decides; a call that has to wait polls it. */
export class Claims {
  readonly #services: ClaimsServices;
  /** What this process confirms, by holder. */
  readonly #held = new Map<string, HeldClaim>();
  readonly #releasing = new Set<Promise<void>>();
  /** How many calls of an account wait; one account may not have all of the places. */
  readonly #waiting = new Map<string, number>();
  #cancelConfirm: (() => void) | undefined;
  #isClosed = false;

  constructor(services: ClaimsServices) {
    this.#services = services;
  }

  /**
   * Resolves to the claim of the call, or to its answer. Throws 409 for another request, for an
   * answer that was not kept, or if the first call runs on for too long; 503 without the store.
   */
  async take(names: AllRequestNames, call: Call): Promise<Taken> {
    if (!this.#services.kept.hasRoom) throw answersUnavailable();
    return (await this.#ask(names, call)) ?? this.#wait(names, call);
  }

  /** Resolves when no claim is being released. Call it when no call is running. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelConfirm?.();
    await Promise.all(this.#releasing);
  }

  /** Asks less and less often. */
  async #wait(names: AllRequestNames, call: Call): Promise<Taken> {
    const { running, clock, settings } = this.#services;
    const { accountId } = call.caller.key;
    const { waitingLimit } = settings();
    const own = this.#waiting.get(accountId) ?? 0;
    const all = this.#waiting.values().reduce((sum, count) => sum + count, 0);
    if (all >= waitingLimit || own >= waitingLimit / 2) throw keyInUse();
    this.#waiting.set(accountId, own + 1);
    const untilMs = clock.monotonic() + waitMs;
    try {
      running.watch(call);
      for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(2 * pauseMs, longestPauseMs)) {
        const leftMs = untilMs - clock.monotonic();
        if (leftMs <= 0) throw keyInUse();
        await wait(Math.min(pauseMs, leftMs), call.signal, clock);
        if (call.signal.aborted) throw call.signal.reason;
        const taken = await this.#ask(names, call);
        if (taken !== undefined) return taken;
      }
    } finally {
      const left = (this.#waiting.get(accountId) ?? 0) - 1;
      if (left > 0) this.#waiting.set(accountId, left);
      else this.#waiting.delete(accountId);
      running.leave(call.id);
    }
  }

  /** Undefined while another call runs. */
  async #ask(names: AllRequestNames, { id: holder, signal }: Call): Promise<Taken | undefined> {
    const answer = await this.#askStore(names, holder, signal);
    switch (answer.kind) {
      case "yours":
        return { claim: this.#hold({ id: names.id, holder }) };
      case "kept":
        return { answer: this.#services.kept.open(answer.reply, names) };
      case "reused":
        throw keyReused();
      default:
        return undefined;
    }
  }

  async #askStore(
    { id, requestDigest, older }: AllRequestNames,
    holder: string,
    signal: EndSignal,
  ): Promise<ClaimAnswer> {
    const { store, clock, settings } = this.#services;
    const olderIds = older.map((names) => names.id);
    const keptAfter = clock.now() - settings().keepMs;
    const asked = store
      .claim({ id, holder, requestDigest, olderIds, keptAfter })
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

  #hold(held: HeldClaim): Claim {
    this.#held.set(held.holder, held);
    this.#confirmLater();
    return {
      ...held,
      saved: () => void this.#held.delete(held.holder),
      release: () => {
        if (this.#held.delete(held.holder)) this.#giveBack(this.#services.store.release(held));
      },
    };
  }

  /** A claim that cannot be given back is over soon, as nobody confirms it. */
  #giveBack(work: Promise<void>): void {
    const release = work.catch(() => undefined).finally(() => this.#releasing.delete(release));
    this.#releasing.add(release);
  }

  #confirmLater(): void {
    if (this.#isClosed) return;
    this.#cancelConfirm ??= this.#services.clock.schedule(() => {
      const again = (): void => {
        this.#cancelConfirm = undefined;
        if (this.#held.size > 0) this.#confirmLater();
      };
      if (this.#held.size === 0) again();
      else this.#services.store.confirm([...this.#held.values()]).then(again, again);
    }, confirmMs);
  }
}
