import type { GatewayError } from "../domain/errors/gateway-error.ts";
import type { AllRequestNames } from "./request-names.ts";
import type { SharedWork } from "./shared/shared-work.ts";

export interface OnceOptions<Kept> {
  /** Finds the unexpired answer under the names. */
  readonly find: (names: AllRequestNames) => Promise<Kept | undefined>;
  /** The refusal of a key that a different running request uses. */
  readonly keyReused: () => GatewayError;
}

/** One of the requests that get the same answer. */
export interface AskedOnce<Kept, Work, Answer> {
  readonly names: AllRequestNames;
  /** A request whose signal has aborted does not begin the work. */
  readonly signal?: AbortSignal;
  /** Creates the work; it is started once its first caller waits. */
  readonly begin: (onEnd: () => void) => Work;
  /** Joins the work synchronously. */
  readonly wait: (work: Work) => Promise<Answer>;
  /** Throws when the running work may not be joined. */
  readonly checkJoin?: (work: Work) => void;
  /** Throws for the answer to another request, or one that may not be shown. */
  readonly open: (kept: Kept) => Answer;
  /** Marks an answer that another request got first. */
  readonly asReplayed: (answer: Answer) => Answer;
}

type Joinable = Pick<SharedWork<unknown>, "isAbandoned" | "answer" | "start">;

/**
 * Runs the work of equal requests once: requests join it while it runs, and get the kept answer
 * afterwards. Work that fails or is abandoned keeps nothing, and the next request begins again.
 */
export class Once<Kept, Work extends Joinable> {
  readonly #options: OnceOptions<Kept>;
  readonly #lookUps = new Map<string, Promise<Kept | undefined>>();
  readonly #running = new Map<string, { readonly work: Work; readonly requestDigest: string }>();
  readonly #keptElsewhere = new WeakMap<Error, Kept>();

  constructor(options: OnceOptions<Kept>) {
    this.#options = options;
  }

  async answer<Answer>(asked: AskedOnce<Kept, Work, Answer>): Promise<Answer> {
    const { names, signal } = asked;
    for (;;) {
      const known = this.#running.has(names.id) ? undefined : await this.#lookUp(names);
      // There is no await from here to the end of `#begin`, so two callers never both begin.
      signal?.throwIfAborted();
      const running = this.#running.get(names.id);
      if (running === undefined) {
        if (known !== undefined) return asked.asReplayed(asked.open(known));
        return this.#orKept(asked, this.#begin(asked));
      }
      const { work, requestDigest } = running;
      if (requestDigest !== names.requestDigest) throw this.#options.keyReused();
      if (!work.isAbandoned) {
        asked.checkJoin?.(work);
        return this.#orKept(asked, asked.wait(work).then(asked.asReplayed));
      }
      // Abandoned work may still be running, and must not run twice at once.
      await work.answer.catch(() => undefined);
    }
  }

  /** What work throws when another process has answered the request. */
  answeredElsewhere(kept: Kept): Error {
    const error = new Error("another process has answered the request");
    this.#keptElsewhere.set(error, kept);
    return error;
  }

  async #orKept<Answer>(
    asked: AskedOnce<Kept, Work, Answer>,
    answer: Promise<Answer>,
  ): Promise<Answer> {
    try {
      return await answer;
    } catch (error) {
      const kept = error instanceof Error ? this.#keptElsewhere.get(error) : undefined;
      if (kept === undefined) throw error;
      return asked.asReplayed(asked.open(kept));
    }
  }

  #begin<Answer>({ names, begin, wait }: AskedOnce<Kept, Work, Answer>): Promise<Answer> {
    const work = begin(() => this.#running.delete(names.id));
    this.#running.set(names.id, { work, requestDigest: names.requestDigest });
    const answer = wait(work);
    work.start();
    return answer;
  }

  /**
   * Concurrent look-ups share one promise, so their requests continue in order of arrival.
   */
  #lookUp(names: AllRequestNames): Promise<Kept | undefined> {
    const { id } = names;
    const running = this.#lookUps.get(id);
    if (running !== undefined) return running;
    const lookUp = this.#options.find(names).finally(() => this.#lookUps.delete(id));
    this.#lookUps.set(id, lookUp);
    return lookUp;
  }
}
