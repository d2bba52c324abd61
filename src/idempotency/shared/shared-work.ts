import type { EndSignal } from "../../domain/waiting/end-signal.ts";

export interface SharedWorkOptions<Answer> {
  /** Does the work. The signal aborts when no caller waits for the answer any more. */
  readonly run: (signal: AbortSignal) => Promise<Answer>;
  /** Called once, when no request can join any more. */
  readonly onEnd: () => void;
}

/** Work shared by equal requests, abandoned when the last of them has left. */
export class SharedWork<Answer, Waiter extends object = object> {
  readonly waiters = new Set<Waiter>();
  readonly #options: SharedWorkOptions<Answer>;
  readonly #abandonment = new AbortController();
  readonly #result = Promise.withResolvers<Answer>();
  #hasEnded = false;

  constructor(options: SharedWorkOptions<Answer>) {
    this.#options = options;
    // The work may fail when no caller waits for it.
    this.#result.promise.catch(() => undefined);
  }

  /** Rejects when the work fails. */
  get answer(): Promise<Answer> {
    return this.#result.promise;
  }

  get isAbandoned(): boolean {
    return this.#abandonment.signal.aborted;
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** Call once, after the first caller has joined. */
  start(): void {
    this.run(this.#abandonment.signal).then(this.#result.resolve, (error: unknown) => {
      this.end();
      this.#result.reject(error);
    });
  }

  /** The answer for a caller that may leave while it waits. */
  wait(waiter: Waiter, caller: EndSignal): Promise<Answer> {
    this.waiters.add(waiter);
    const leave = (): void => this.leave(waiter, caller.reason);
    if (caller.aborted) leave();
    else caller.addEventListener("abort", leave, { once: true });
    return this.answer;
  }

  leave(waiter: Waiter, reason: unknown): void {
    this.waiters.delete(waiter);
    if (this.waiters.size === 0) this.allLeft(reason);
  }

  protected async run(signal: AbortSignal): Promise<Answer> {
    const answer = await this.#options.run(signal);
    this.end();
    return answer;
  }

  protected allLeft(reason: unknown): void {
    this.abandon(reason);
  }

  protected abandon(reason: unknown): void {
    this.#abandonment.abort(reason);
  }

  protected end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#options.onEnd();
  }
}
