import type { Clock } from "../domain/clock.ts";
import type { RandomBytes } from "../domain/keys/base62.ts";
import type { AnswerResult, IdempotencySettings } from "../domain/idempotency-settings.ts";
import type { KeptReply, ReplyStore } from "../store/store.ts";
import { openAnswer, sealAnswer } from "./answer-seal.ts";
import type { KeptAnswer } from "./shared/answer.ts";
import { answerNotKept, answersUnavailable, keyReused } from "./refusals.ts";
import { namesOfReply, type AllRequestNames, type RequestNames } from "./request-names.ts";

export interface KeptAnswersServices {
  readonly random: RandomBytes;
  readonly store: Pick<ReplyStore, "find" | "put">;
  readonly clock: Pick<Clock, "now" | "schedule">;
  /** Read for each call: a reload changes it. */
  readonly settings: () => IdempotencySettings;
  /** Called with the result of answers; `amount` is 1 by default. */
  readonly onAnswer: (result: AnswerResult, amount?: number) => void;
  /** Called when an answer that waited in memory is stored, or has expired. */
  readonly onSaved?: (id: string) => void;
}

/** A call with its answer. */
export interface AnsweredCall {
  readonly names: RequestNames;
  readonly accountId: string;
  /** Undefined: the call was made, but its answer is too large. */
  readonly answer: KeptAnswer | undefined;
}

/** Wait before failed writes are retried. */
const retryMs = 1_000;
/** After this many failures in one run the store itself is considered unavailable. */
const mostFailures = 3;

/**
 * Complete answers to calls with an `Idempotency-Key`. Answers that cannot be stored wait in memory
 * and are retried. While nothing can be stored, no new call is admitted, so only running calls can
 * add answers.
 */
export class KeptAnswers {
  readonly #services: KeptAnswersServices;
  readonly #unsaved = new Map<string, KeptReply>();
  #unsavedBytes = 0;
  #saving: Promise<void> | undefined;
  #cancelRetry: (() => void) | undefined;
  #isClosed = false;

  constructor(services: KeptAnswersServices) {
    this.#services = services;
  }

  /** Finds the reply kept under the names. Rejects with 503 when the store is unavailable. */
  async find({ id, older }: AllRequestNames): Promise<KeptReply | undefined> {
    const unsaved = this.findUnsaved(id);
    if (unsaved !== undefined) return unsaved;
    try {
      let stored = this.#unexpired(await this.#services.store.find(id));
      for (const names of older) {
        stored ??= this.#unexpired(await this.#services.store.find(names.id));
      }
      // A new call needs a store that accepts its answer.
      if (stored === undefined && this.#unsaved.size > 0) await this.#save();
      return stored;
    } catch (error) {
      throw answersUnavailable(error);
    }
  }

  /** Finds a reply that is not stored yet, which other processes cannot find. */
  findUnsaved(id: string): KeptReply | undefined {
    return this.#unexpired(this.#unsaved.get(id));
  }

  /** Throws 409 for the answer to another request, or one that was not kept. */
  open(reply: KeptReply, all: AllRequestNames): KeptAnswer {
    const names = namesOfReply(reply, all);
    if (names === undefined) throw keyReused();
    if (reply.body === undefined) throw answerNotKept();
    return openAnswer(reply.body, names);
  }

  /** Resolves once `find` returns the answer; never rejects. */
  async keep({ names, accountId, answer }: AnsweredCall): Promise<void> {
    const reply: KeptReply = {
      id: names.id,
      accountId,
      requestDigest: names.requestDigest,
      body: answer && this.#trySeal(answer, names),
      keptAt: this.#services.clock.now(),
    };
    try {
      await this.#put(reply);
      this.#report(reply);
      this.#forget(reply.id);
    } catch {
      // The store reports its own failures.
      this.#hold(reply);
    }
  }

  /** Retries the waiting answers a last time before the store is closed. Never rejects. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelRetry?.();
    // An earlier run may have failed before the store became available again.
    await this.#saving?.catch(() => undefined);
    if (this.#unsaved.size > 0) await this.#save().catch(() => undefined);
  }

  /** Without a seal, the record that the call was made is still kept. */
  #trySeal(answer: KeptAnswer, names: RequestNames): Uint8Array | undefined {
    try {
      return sealAnswer(answer, names, this.#services.random);
    } catch {
      return undefined;
    }
  }

  #unexpired(reply: KeptReply | undefined): KeptReply | undefined {
    const { clock, settings } = this.#services;
    if (reply === undefined) return undefined;
    return clock.now() - reply.keptAt < settings().keepMs ? reply : undefined;
  }

  /** Keeps the record of the call in memory, with its answer if there is room. */
  #hold(reply: KeptReply): void {
    this.#forget(reply.id);
    const bytes = bodyBytes(reply);
    const hasRoom = this.#unsavedBytes + bytes <= this.#services.settings().memoryLimitBytes;
    this.#unsaved.set(reply.id, hasRoom ? reply : { ...reply, body: undefined });
    if (hasRoom) this.#unsavedBytes += bytes;
    this.#retryLater();
  }

  #forget(id: string): void {
    const reply = this.#unsaved.get(id);
    if (reply === undefined) return;
    this.#unsaved.delete(id);
    this.#unsavedBytes -= bodyBytes(reply);
  }

  #retryLater(): void {
    if (this.#isClosed || this.#unsaved.size === 0) return;
    this.#cancelRetry ??= this.#services.clock.schedule(() => {
      this.#cancelRetry = undefined;
      this.#save().catch(() => undefined);
    }, retryMs);
  }

  /** Rejects when no waiting answer could be stored. */
  #save(): Promise<void> {
    this.#saving ??= this.#saveAll().finally(() => {
      this.#saving = undefined;
      this.#retryLater();
    });
    return this.#saving;
  }

  async #saveAll(): Promise<void> {
    const failures: unknown[] = [];
    let saved = 0;
    // Answers that arrive meanwhile or fail wait for the next run.
    const waiting = [...this.#unsaved.values()];
    for (const reply of waiting) {
      if (failures.length >= mostFailures) break;
      // Another reply may have replaced it meanwhile.
      const isWaiting = (): boolean => this.#unsaved.get(reply.id) === reply;
      if (!isWaiting()) continue;
      try {
        if (this.#unexpired(reply) !== undefined) {
          this.#report(await this.#store(reply));
          saved += 1;
        }
        if (!isWaiting()) continue;
        this.#forget(reply.id);
        this.#services.onSaved?.(reply.id);
      } catch (error) {
        failures.push(error);
        if (isWaiting()) this.#moveToEnd(reply);
      }
    }
    if (saved === 0 && failures.length > 0) throw failures[0];
  }

  /**
   * Resolves to the stored reply, without its answer if the store refuses only that. Rejects when
   * the store is unavailable.
   */
  async #store(reply: KeptReply): Promise<KeptReply> {
    try {
      return await this.#put(reply);
    } catch (error) {
      if (reply.body === undefined) throw error;
      const bodiless = await this.#put({ ...reply, body: undefined });
      // The store may have become available between the two writes.
      return this.#put(reply).catch(() => bodiless);
    }
  }

  async #put(reply: KeptReply): Promise<KeptReply> {
    const { store, settings, onAnswer } = this.#services;
    const evicted = await store.put(reply, settings().storageLimitBytes);
    if (evicted > 0) onAnswer("evicted", evicted);
    return reply;
  }

  #report({ body }: KeptReply): void {
    this.#services.onAnswer(body === undefined ? "too_large" : "stored");
  }

  /** Moves a reply to the end, so that the next run starts with others. */
  #moveToEnd(reply: KeptReply): void {
    this.#unsaved.delete(reply.id);
    this.#unsaved.set(reply.id, reply);
  }
}

function bodyBytes({ body }: KeptReply): number {
  return body?.byteLength ?? 0;
}
