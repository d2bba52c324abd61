import type { Clock } from "../domain/clock.ts";
import type { RandomBytes } from "../domain/keys/base62.ts";
import type { AnswerResult, IdempotencySettings } from "../domain/settings.ts";
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
  /** Called when an answer that waited in memory is stored, or has expired. */
  readonly onSaved?: (holder: string) => void;
}

/** A call with its answer. */
export interface AnsweredCall {
  readonly names: RequestNames;
  /** The holder of the claim, which ends when the answer is stored. */
  readonly holder: string;
  readonly accountId: string;
  /** Undefined: the call was made, but its answer is too large. */
  readonly answer: KeptAnswer | undefined;
}

interface UnsavedReply {
  readonly reply: KeptReply;
  readonly holder: string;
}

/** Wait before failed writes are retried. */
const retryMs = 1_000;
/** Answers that wait for the store at once; with more, no new call is made. */
const mostUnsaved = 1_000;
/** After this many failures in one run the store itself is considered unavailable. */
const mostFailures = 3;

/**
 * Stores complete answers to calls with an `Idempotency-Key`. Answers that cannot be stored wait in
 * memory and are retried.
 */
export class KeptAnswers {
  readonly #services: KeptAnswersServices;
  readonly #unsaved = new Map<string, UnsavedReply>();
  #saving: Promise<void> | undefined;
  #cancelRetry: (() => void) | undefined;
  #isClosed = false;

  constructor(services: KeptAnswersServices) {
    this.#services = services;
  }

  /** Whether a new call may add an answer. */
  get hasRoom(): boolean {
    return this.#unsaved.size < mostUnsaved;
  }

  /** Finds a reply that is not stored yet, which other processes cannot find. */
  findUnsaved(id: string): KeptReply | undefined {
    const reply = this.#unsaved.get(id)?.reply;
    return reply !== undefined && this.#isCurrent(reply) ? reply : undefined;
  }

  /** Throws 409 for the answer to another request, or one that was not kept. */
  open(reply: KeptReply, all: AllRequestNames): KeptAnswer {
    const names = namesOfReply(reply, all);
    if (names === undefined) throw keyReused();
    if (reply.body === undefined) throw answerNotKept();
    return openAnswer(reply.body, names);
  }

  /** Resolves once repeats in this process get the answer: true if it is stored. Never rejects. */
  async keep({ names, holder, accountId, answer }: AnsweredCall): Promise<boolean> {
    const reply: KeptReply = {
      id: names.id,
      accountId,
      requestDigest: names.requestDigest,
      body: answer && this.#trySeal(answer, names),
      keptAt: this.#services.clock.now(),
    };
    try {
      await this.#put({ reply, holder });
      this.#report(reply);
      return true;
    } catch {
      // The store reports its own failures.
      this.#hold({ reply, holder });
      return false;
    }
  }

  /** Retries the waiting answers a last time before the store is closed. Never rejects. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelRetry?.();
    // An earlier run may have failed before the store became available again.
    await this.#saving;
    if (this.#unsaved.size > 0) await this.#save();
  }

  /** Without a seal, the record that the call was made is still kept. */
  #trySeal(answer: KeptAnswer, names: RequestNames): Uint8Array | undefined {
    try {
      return sealAnswer(answer, names, this.#services.random);
    } catch {
      return undefined;
    }
  }

  #isCurrent({ keptAt }: KeptReply): boolean {
    const { clock, settings } = this.#services;
    return clock.now() - keptAt < settings().keepMs;
  }

  /** Keeps the record of the call in memory, with its answer if there is room. */
  #hold({ reply, holder }: UnsavedReply): void {
    this.#forget(reply.id);
    const hasRoom = this.#services.memory.tryTake(bodyBytes(reply));
    const held = hasRoom ? reply : { ...reply, body: undefined };
    this.#unsaved.set(reply.id, { reply: held, holder });
    this.#retryLater();
  }

  #forget(id: string): void {
    const unsaved = this.#unsaved.get(id);
    if (unsaved === undefined) return;
    this.#unsaved.delete(id);
    this.#services.memory.giveBack(bodyBytes(unsaved.reply));
    this.#services.onSaved?.(unsaved.holder);
  }

  #retryLater(): void {
    if (this.#isClosed || this.#unsaved.size === 0) return;
    this.#cancelRetry ??= this.#services.clock.schedule(() => {
      this.#cancelRetry = undefined;
      void this.#save();
    }, retryMs);
  }

  #save(): Promise<void> {
    this.#saving ??= this.#saveAll().finally(() => {
      this.#saving = undefined;
      this.#retryLater();
    });
    return this.#saving;
  }

  async #saveAll(): Promise<void> {
    let failures = 0;
    // Answers that arrive meanwhile or fail wait for the next run.
    const waiting = [...this.#unsaved];
    for (const [id, unsaved] of waiting) {
      if (failures >= mostFailures) return;
      try {
        if (this.#isCurrent(unsaved.reply)) this.#report(await this.#store(unsaved));
        if (this.#unsaved.get(id) === unsaved) this.#forget(id);
      } catch {
        failures += 1;
        // The next run starts with others.
        if (this.#unsaved.get(id) !== unsaved) continue;
        this.#unsaved.delete(id);
        this.#unsaved.set(id, unsaved);
      }
    }
  }

  /**
   * Resolves to the stored reply, without its answer if the store refuses only that. Rejects when
   * the store is unavailable.
   */
  async #store(unsaved: UnsavedReply): Promise<KeptReply> {
    try {
      return await this.#put(unsaved);
    } catch (error) {
      const { reply, holder } = unsaved;
      if (reply.body === undefined) throw error;
      const bodiless = await this.#put({ reply: { ...reply, body: undefined }, holder });
      // The store may have become available between the two writes.
      return this.#put(unsaved).catch(() => bodiless);
    }
  }

  async #put({ reply, holder }: UnsavedReply): Promise<KeptReply> {
    const { store, settings, onAnswer } = this.#services;
    const limitBytes = settings().storageLimitBytes;
    const evicted = await store.keep({ reply, holder, limitBytes });
    if (evicted > 0) onAnswer("evicted", evicted);
    return reply;
  }

  #report({ body }: KeptReply): void {
    this.#services.onAnswer(body === undefined ? "too_large" : "stored");
  }
}

function bodyBytes({ body }: KeptReply): number {
  return body?.byteLength ?? 0;
}
