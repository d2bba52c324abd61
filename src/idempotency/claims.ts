import { abortable } from "../domain/waiting/abortable.ts";
import type { ClaimDecision, Joins } from "../store/joins.ts";
import type { KeptReply } from "../store/store.ts";
import type { KeptAnswers } from "./kept-answers.ts";
import { answersUnavailable, keyReused } from "./refusals.ts";
import type { AllRequestNames } from "./request-names.ts";
import type { SharedWorkOptions } from "./shared/shared-work.ts";

export interface ClaimsServices {
  readonly joins: Joins;
  readonly kept: Pick<KeptAnswers, "find" | "findUnsaved">;
  /** The error of a call that another process has answered. */
  readonly answeredElsewhere: (kept: KeptReply) => Error;
}

interface Claim {
  readonly ended: Promise<void>;
  release(): void;
}

/** The right of this process to run calls that other processes may receive too. */
export class Claims {
  readonly #services: ClaimsServices;
  /** Claims that this process holds or has asked for. */
  readonly #claims = new Map<string, Claim>();

  constructor(services: ClaimsServices) {
    this.#services = services;
  }

  /**
   * Wraps work so that it runs once no other process runs it. It rejects when another process has
   * answered, with 409 while a different call runs under the key, and with 503 if nobody can
   * decide.
   */
  guard<Answer>(
    names: AllRequestNames,
    { run, onEnd }: SharedWorkOptions<Answer>,
  ): SharedWorkOptions<Answer> {
    const settled = Promise.withResolvers<Claim | undefined>();
    return {
      run: async (signal) => {
        let claim: Claim | undefined;
        try {
          claim = await this.#take(names, signal);
          return await run(signal);
        } finally {
          settled.resolve(claim);
        }
      },
      onEnd: () => {
        onEnd();
        void settled.promise.then((claim) => this.#end(names.id, claim));
      },
    };
  }

  /** Call when an answer that only this process had is stored. */
  release(id: string): void {
    this.#claims.get(id)?.release();
  }

  #end(id: string, claim: Claim | undefined): void {
    const { kept, joins } = this.#services;
    if (kept.findUnsaved(id) === undefined) claim?.release();
    else if (claim !== undefined) joins.unsaved(id);
  }

  async #take(names: AllRequestNames, signal: AbortSignal): Promise<Claim> {
    for (;;) {
      const claim = await this.#begin(names.id, signal);
      try {
        const decision = await abortable(this.#ask(names), signal);
        if (decision === "reused") throw keyReused();
        if (decision === "unsaved") throw answersUnavailable();
        if (decision === "owner") return claim;
      } catch (error) {
        claim.release();
        throw error;
      }
      claim.release();
    }
  }

  /** Resolves once no earlier call of this process has the claim. */
  async #begin(id: string, signal: AbortSignal): Promise<Claim> {
    for (let before = this.#claims.get(id); before !== undefined; before = this.#claims.get(id)) {
      await abortable(before.ended, signal);
    }
    signal.throwIfAborted();
    const { promise: ended, resolve } = Promise.withResolvers<void>();
    const claim = {
      ended,
      release: () => {
        if (this.#claims.get(id) !== claim) return;
        this.#claims.delete(id);
        this.#services.joins.release(id);
        resolve();
      },
    };
    this.#claims.set(id, claim);
    return claim;
  }

  /** Rejects when an answer is kept. */
  async #ask(names: AllRequestNames): Promise<ClaimDecision> {
    const { kept, answeredElsewhere } = this.#services;
    // Messages keep their order: the lookup follows the claim, so an owner misses no answer.
    const [decision, reply] = await Promise.all([this.#claim(names), kept.find(names)]);
    if (reply !== undefined) throw answeredElsewhere(reply);
    return decision;
  }

  async #claim({ id, requestDigest }: AllRequestNames): Promise<ClaimDecision> {
    try {
      return await this.#services.joins.claim({ id, requestDigest });
    } catch (error) {
      throw answersUnavailable(error);
    }
  }
}
