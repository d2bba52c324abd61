import type { Clock } from "../domain/clock.ts";
import type { RandomBytes } from "../domain/keys/base62.ts";
import type { AnswerResult, IdempotencySettings } from "../domain/settings.ts";
import { StorageUnavailable } from "../store/errors.ts";
import type { CallClaims, KeptReply } from "../store/store.ts";
import type { KeptAnswer } from "./answer.ts";
import type { AnswerMemory } from "./kept-frames.ts";
import { answerNotKept, keyReused } from "./refusals.ts";
import { namesOfReply, type AllRequestNames, type RequestNames } from "./request-names.ts";
import { openAnswer, sealAnswer } from "./seal.ts";

export interface KeptAnswersServices {
  readonly random: RandomBytes;
  readonly store: Pick<CallClaims, "keep">;
  readonly clock: Pick<Clock, "now" | "schedule">;
  /** Read for each call: a reload changes it. */
  readonly settings: () => IdempotencySettings;
  /** Holds the answers that wait for the store, too. */
  readonly memory: AnswerMemory;
  /** Called with the result of answers; `amount` is 1 by default. */
  readonly onAnswer: (result: AnswerResult, amount?: number) => void;
}

/** A call with its answer. */
export interface AnsweredCall {
  readonly names: RequestNames;
  /** The claim of the call, which is told when the answer is stored. */
  readonly claim: { readonly holder: string; saved(): void };
  readonly accountId: string;
  /** Undefined: the call was made, but its answer is too large. */
  readonly answer: KeptAnswer | undefined;
}

interface UnsavedReply {
  readonly reply: KeptReply;
  readonly claim: AnsweredCall["claim"];
}

/** Wait before failed writes are retried. */
const retryMs = 1_000;
/** Answers that wait for the store at once; with more, no new call is made. */
const mostUnsaved = 1_000;

/**
 * Stores complete answers to calls with an `Idempotency-Key`. One that cannot be stored waits in
 * memory, under the claim of its call, and is tried again.
 */
export class KeptAnswers {
  readonly #services: KeptAnswersServices;
  readonly #unsaved = new Set<UnsavedReply>();
  #cancelRetry: (() => void) | undefined;
  #isClosed = false;

  constructor(services: KeptAnswersServices) {
    this.#services = services;
  }

  /** Whether a new call may add an answer. */
  get hasRoom(): boolean {
    return this.#unsaved.size < mostUnsaved;
  }

  /** Throws 409 for the answer to another request, or one that was not kept. */
  open(reply: KeptReply, all: AllRequestNames): KeptAnswer {
    const names = namesOfReply(reply, all);
    if (names === undefined) throw keyReused();
    if (reply.body === undefined) throw answerNotKept();
    return openAnswer(reply.body, names);
  }

  /** Resolves once the answer is stored, or waits for that. Never rejects. */
  async keep({ names, claim, accountId, answer }: AnsweredCall): Promise<void> {
    const reply: KeptReply = {
      id: names.id,
      accountId,
      requestDigest: names.requestDigest,
      body: answer && sealAnswer(answer, names, this.#services.random),
      keptAt: this.#services.clock.now(),
    };
    if (await this.#tryStore({ reply, claim })) return;
    const hasRoom = this.#services.memory.tryTake(bodyBytes(reply));
    this.#unsaved.add({ reply: hasRoom ? reply : { ...reply, body: undefined }, claim });
    this.#retryLater();
  }

  /** Tries the waiting answers a last time before the store is closed. Never rejects. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelRetry?.();
    await this.#storeAll();
  }

  #retryLater(): void {
    this.#cancelRetry ??= this.#services.clock.schedule(() => {
      void this.#storeAll().finally(() => {
        this.#cancelRetry = undefined;
        if (this.#unsaved.size > 0 && !this.#isClosed) this.#retryLater();
      });
    }, retryMs);
  }

  async #storeAll(): Promise<void> {
    const { memory, clock, settings } = this.#services;
    for (const unsaved of this.#unsaved) {
      const { reply, claim } = unsaved;
      const isExpired = clock.now() - reply.keptAt >= settings().keepMs;
      const isStored = !isExpired && (await this.#tryStore(unsaved, true));
      if (!this.#unsaved.delete(unsaved)) continue;
      if (!isExpired && !isStored) {
        // The next run begins with the others.
        this.#unsaved.add(unsaved);
        return;
      }
      memory.giveBack(bodyBytes(reply));
      claim.saved();
    }
  }

  async #tryStore({ reply, claim }: UnsavedReply, isAgain = false): Promise<boolean> {
    const { store, settings, onAnswer } = this.#services;
    const limitBytes = settings().storageLimitBytes;
    try {
      const evicted = await store.keep({ reply, holder: claim.holder, limitBytes });
      if (evicted > 0) onAnswer("evicted", evicted);
    } catch (error) {
      // The store reports its own failures.
      if (!isAgain || error instanceof StorageUnavailable || reply.body === undefined) return false;
      // It refuses this answer; that the call was made can still be stored.
      return this.#tryStore({ reply: { ...reply, body: undefined }, claim });
    }
    onAnswer(reply.body === undefined ? "too_large" : "stored");
    claim.saved();
    return true;
  }
}

function bodyBytes({ body }: KeptReply): number {
  return body?.byteLength ?? 0;
}
