import type { Clock } from "../../domain/clock.ts";
import type { IdempotencySettings } from "../../domain/idempotency-settings.ts";
import type { KeptReply, ReplyStore } from "../../storage/store.ts";
import { openAnswer, sealAnswer, type KeptAnswer, type SealServices } from "./answer-seal.ts";
import type { CallNames } from "./call-names.ts";
import { answerNotKept, answersAway, keyReused } from "./refusals.ts";

export interface KeptAnswersServices extends SealServices {
  readonly store: ReplyStore;
  readonly clock: Pick<Clock, "now">;
  /** Read for each call: a reload changes it. */
  readonly settings: () => IdempotencySettings;
}

/** What is to be kept of a call. */
export interface AnsweredCall {
  readonly names: CallNames;
  readonly accountId: string;
  /** Undefined: the call was done, and its answer is too large. */
  readonly answer: KeptAnswer | undefined;
}

/**
 * Whole answers to calls with an `Idempotency-Key`. What cannot be stored at once waits in memory;
 * meanwhile no other call is looked up, so no more can come to it than what runs already.
 */
export class KeptAnswers {
  readonly #services: KeptAnswersServices;
  readonly #lookUps = new Map<string, Promise<KeptReply | undefined>>();
  readonly #unsaved = new Map<string, KeptReply>();
  #unsavedBytes = 0;
  #saving: Promise<void> | undefined;

  constructor(services: KeptAnswersServices) {
    this.#services = services;
  }

  /**
   * What is kept under the names. Those who look at the same time get the same promise, so that they
   * go on one after the other, in the order in which they came. Rejects with 503 when the store
   * cannot be asked.
   */
  look({ id }: CallNames): Promise<KeptReply | undefined> {
    const running = this.#lookUps.get(id);
    if (running !== undefined) return running;
    const lookUp = this.#lookUp(id).finally(() => this.#lookUps.delete(id));
    this.#lookUps.set(id, lookUp);
    return lookUp;
  }

  /** Throws 409 when it is the answer to another request, or was not kept. */
  open(reply: KeptReply, names: CallNames): KeptAnswer {
    if (reply.requestDigest !== names.requestDigest) throw keyReused();
    if (reply.body === undefined) throw answerNotKept();
    return openAnswer(reply.body, names, this.#services);
  }

  /** Resolves once the answer is found by those who look for it; never rejects. */
  async keep({ names, accountId, answer }: AnsweredCall): Promise<void> {
    const { store, clock, settings } = this.#services;
    const reply: KeptReply = {
      id: names.id,
      accountId,
      requestDigest: names.requestDigest,
      body: answer && sealAnswer(answer, names, this.#services),
      keptAt: clock.now(),
    };
    try {
      await store.put(reply, settings().storageLimitBytes);
    } catch {
      // Whoever owns the store reports its troubles.
      this.#hold(reply);
    }
  }

  async #lookUp(id: string): Promise<KeptReply | undefined> {
    const reply = this.#unsaved.get(id) ?? (await this.#ask(id));
    return reply !== undefined && this.#isKnown(reply) ? reply : undefined;
  }

  async #ask(id: string): Promise<KeptReply | undefined> {
    try {
      if (this.#unsaved.size > 0) await (this.#saving ??= this.#saveAll());
      return await this.#services.store.find(id);
    } catch (error) {
      throw answersAway(error);
    }
  }

  #isKnown({ keptAt }: KeptReply): boolean {
    const { clock, settings } = this.#services;
    return clock.now() - keptAt < settings().keepMs;
  }

  /** That the call was done is never forgotten; what it was answered, when there is no room. */
  #hold(reply: KeptReply): void {
    const bytes = reply.body?.byteLength ?? 0;
    const hasRoom = this.#unsavedBytes + bytes <= this.#services.settings().memoryLimitBytes;
    this.#unsaved.set(reply.id, hasRoom ? reply : { ...reply, body: undefined });
    if (hasRoom) this.#unsavedBytes += bytes;
  }

  async #saveAll(): Promise<void> {
    const { store, settings } = this.#services;
    try {
      for (const reply of this.#unsaved.values()) {
        if (this.#isKnown(reply)) await store.put(reply, settings().storageLimitBytes);
        this.#unsaved.delete(reply.id);
        this.#unsavedBytes -= reply.body?.byteLength ?? 0;
      }
    } finally {
      this.#saving = undefined;
    }
  }
}
