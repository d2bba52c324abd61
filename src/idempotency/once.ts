import type { GatewayError } from "../domain/errors/gateway-error.ts";
import type { AllRequestNames } from "./request-names.ts";
import type { SharedWork } from "./shared-work.ts";

export interface OnceOptions<Kept> {
  /** What is kept under the names, and is not too old. */
  readonly find: (names: AllRequestNames) => Promise<Kept | undefined>;
  /** For the key of another request that still runs. */
  readonly keyReused: () => GatewayError;
}

/** What one request asks for; all of it is told one and the same answer in the end. */
export interface AskedOnce<Kept, Work, Answer> {
  readonly names: AllRequestNames;
  /** Fires when its caller leaves, who then begins nothing; without it, what was asked is begun. */
  readonly signal?: AbortSignal;
  /** Makes the work, which is started once its first caller waits. */
  readonly begin: (onEnd: () => void) => Work;
  /** Joins the work, at once. */
  readonly wait: (work: Work) => Promise<Answer>;
  /** Throws when what runs may not be joined. */
  readonly checkJoin?: (work: Work) => void;
  /** Throws when it is the answer to another request, or may not be shown. */
  readonly open: (kept: Kept) => Answer;
  /** Marks an answer that somebody else got first. */
  readonly asReplayed: (answer: Answer) => Answer;
}

/**
 * Does once what several requests of one identity ask for: while it is done, equal requests join it;
 * afterwards they get the answer that was kept. What fails, or is left by all, keeps nothing, and the
 * next request begins anew.
 */
export class Once<Kept, Work extends Pick<SharedWork<unknown>, JoinedPart>> {
  readonly #options: OnceOptions<Kept>;
  readonly #lookUps = new Map<string, Promise<Kept | undefined>>();
  readonly #running = new Map<string, Work>();

  constructor(options: OnceOptions<Kept>) {
    this.#options = options;
  }

  async answer<Answer>(asked: AskedOnce<Kept, Work, Answer>): Promise<Answer> {
    const { names, signal } = asked;
    for (;;) {
      const known = this.#running.has(names.id) ? undefined : await this.#look(names);
      // From here to the end of `#begin` nothing waits: two callers never both begin.
      signal?.throwIfAborted();
      const running = this.#running.get(names.id);
      if (running === undefined) {
        return known === undefined ? this.#begin(asked) : asked.asReplayed(asked.open(known));
      }
      if (running.requestDigest !== names.requestDigest) throw this.#options.keyReused();
      if (!running.isAbandoned) {
        asked.checkJoin?.(running);
        return asked.asReplayed(await asked.wait(running));
      }
      // What was given up may still be done, and must not be begun beside itself.
      await running.answer.catch(() => undefined);
    }
  }

  #begin<Answer>({ names, begin, wait }: AskedOnce<Kept, Work, Answer>): Promise<Answer> {
    const work = begin(() => this.#running.delete(names.id));
    this.#running.set(names.id, work);
    const answer = wait(work);
    work.start();
    return answer;
  }

  /**
   * Those who look at the same time get the same promise, so that they go on one after the other, in
   * the order in which they came.
   */
  #look(names: AllRequestNames): Promise<Kept | undefined> {
    const { id } = names;
    const running = this.#lookUps.get(id);
    if (running !== undefined) return running;
    const lookUp = this.#options.find(names).finally(() => this.#lookUps.delete(id));
    this.#lookUps.set(id, lookUp);
    return lookUp;
  }
}

type JoinedPart = "requestDigest" | "isAbandoned" | "answer" | "start";
