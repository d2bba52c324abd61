import type { Clock } from "../domain/clock.ts";
import type { AnswerResult, IdempotencySettings } from "../domain/idempotency-settings.ts";
import type { KeptReply, ReplyStore } from "../store/store.ts";
import { openAnswer, sealAnswer, type KeptAnswer, type SealServices } from "./answer-seal.ts";
import { answerNotKept, answersAway, keyReused } from "./refusals.ts";
import { namesOfReply, type AllRequestNames, type RequestNames } from "./request-names.ts";

export interface KeptAnswersServices extends SealServices {
  readonly store: ReplyStore;
  readonly clock: Pick<Clock, "now" | "schedule">;
  /** Read for each call: a reload changes it. */
  readonly settings: () => IdempotencySettings;
  /** Told what becomes of answers; one, unless it says how many. */
  readonly onAnswer: (result: AnswerResult, amount?: number) => void;
}

/** What is to be kept of a call. */
export interface AnsweredCall {
  readonly names: RequestNames;
  readonly accountId: string;
  /** Undefined: the call was done, and its answer is too large. */
  readonly answer: KeptAnswer | undefined;
}

/** How soon what could not be stored is tried again. */
const retryMs = 1_000;
/** So many failures in one go are the store's own; to try all of them would only take time. */
const failuresAtOnce = 3;

/**
 * Whole answers to calls with an `Idempotency-Key`. What cannot be stored at once waits in memory and
 * is tried again; while nothing can be stored no new call is let through, so no more can come to it
 * than what runs already.
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

  /** What is kept under the names. Rejects with 503 when the store cannot be asked. */
  async find({ id, older }: AllRequestNames): Promise<KeptReply | undefined> {
    const unsaved = this.#known(this.#unsaved.get(id));
    if (unsaved !== undefined) return unsaved;
    try {
      let stored = this.#known(await this.#services.store.find(id));
      for (const names of older) {
        stored ??= this.#known(await this.#services.store.find(names.id));
      }
      // The answer to a call that is let through now must find a store that takes it.
      if (stored === undefined && this.#unsaved.size > 0) await this.#save();
      return stored;
    } catch (error) {
      throw answersAway(error);
    }
  }

  /** Throws 409 when it is the answer to another request, or was not kept. */
  open(reply: KeptReply, all: AllRequestNames): KeptAnswer {
    const names = namesOfReply(reply, all);
    if (names === undefined) throw keyReused();
    if (reply.body === undefined) throw answerNotKept();
    return openAnswer(reply.body, names);
  }

  /** Resolves once the answer is found by those who look for it; never rejects. */
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
      this.#tell(reply);
      this.#forget(reply.id);
    } catch {
      // Whoever owns the store reports its troubles.
      this.#hold(reply);
    }
  }

  /** Tries for the last time to store what waits; before the store is closed. Never rejects. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelRetry?.();
    // What began before may have met a store that is back by now.
    await this.#saving?.catch(() => undefined);
    if (this.#unsaved.size > 0) await this.#save().catch(() => undefined);
  }

  /** That the call was done counts for more than what it was answered. */
  #trySeal(answer: KeptAnswer, names: RequestNames): Uint8Array | undefined {
    try {
      return sealAnswer(answer, names, this.#services);
    } catch {
      return undefined;
    }
  }

  /** Undefined for what is too old. */
  #known(reply: KeptReply | undefined): KeptReply | undefined {
    const { clock, settings } = this.#services;
    if (reply === undefined) return undefined;
    return clock.now() - reply.keptAt < settings().keepMs ? reply : undefined;
  }

  /** That the call was done is never forgotten; what it was answered, when there is no room. */
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

  /** Rejects when nothing could be stored of what waits. */
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
    // What comes meanwhile, and what fails, waits for the next time.
    const waiting = [...this.#unsaved.values()];
    for (const reply of waiting) {
      if (failures.length >= failuresAtOnce) break;
      // By now it may be another that waits under its name.
      const isWaiting = (): boolean => this.#unsaved.get(reply.id) === reply;
      if (!isWaiting()) continue;
      try {
        if (this.#known(reply) !== undefined) {
          this.#tell(await this.#store(reply));
          saved += 1;
        }
        if (isWaiting()) this.#forget(reply.id);
      } catch (error) {
        failures.push(error);
        if (isWaiting()) this.#moveToEnd(reply);
      }
    }
    if (saved === 0 && failures.length > 0) throw failures[0];
  }

  /**
   * Resolves to what is stored: an answer that alone is not taken is given up. Rejects when the store
   * takes nothing.
   */
  async #store(reply: KeptReply): Promise<KeptReply> {
    try {
      return await this.#put(reply);
    } catch (error) {
      if (reply.body === undefined) throw error;
      const bodiless = await this.#put({ ...reply, body: undefined });
      // The store may have come back just between the two.
      return this.#put(reply).catch(() => bodiless);
    }
  }

  async #put(reply: KeptReply): Promise<KeptReply> {
    const { store, settings, onAnswer } = this.#services;
    const evicted = await store.put(reply, settings().storageLimitBytes);
    if (evicted > 0) onAnswer("evicted", evicted);
    return reply;
  }

  #tell({ body }: KeptReply): void {
    this.#services.onAnswer(body === undefined ? "too_large" : "stored");
  }

  /** Others come first the next time. */
  #moveToEnd(reply: KeptReply): void {
    this.#unsaved.delete(reply.id);
    this.#unsaved.set(reply.id, reply);
  }
}

function bodyBytes({ body }: KeptReply): number {
  return body?.byteLength ?? 0;
}
