import { LinkLost } from "../../src/process/link/link-errors.ts";
import type { Handlers, Messages } from "../../src/process/link/link.ts";
import type { CoordinationMessages } from "../../src/process/link/messages.ts";
import type { CoordinationLink } from "../../src/process/worker/coordination/coordination-link.ts";

export interface MemoryLinkOptions {
  /** Runs something when a message has arrived; at once without it. */
  readonly later?: (run: () => void) => void;
}

/** A worker's link to control in one process, whose messages arrive in order, as JSON. */
export class MemoryLink {
  readonly link: CoordinationLink = {
    ask: (kind, body) => this.#ask(kind, body),
    join: () => undefined,
    tell: (kind, body) => this.#send(() => void this.#deliver(kind, body)),
    tellSoon: (kind, body) => this.#send(() => void this.#deliver(kind, body)),
  };
  readonly #later: (run: () => void) => void;
  readonly #failing = new Set<(error: LinkLost) => void>();
  #handlers: Partial<Handlers<Messages>> | undefined;
  #isOpen = false;
  /** On their way to the worker, oldest first. */
  #back: (() => void)[] = [];
  #connections = 0;

  constructor({ later = (run) => run() }: MemoryLinkOptions = {}) {
    this.#later = later;
  }

  /** `handlers`: those of control's end. */
  connect(handlers: Partial<Handlers<CoordinationMessages>>): void {
    this.#handlers = handlers as Partial<Handlers<Messages>>;
    this.#isOpen = true;
    this.#connections += 1;
  }

  /** Runs something at the worker's end, after all that control has sent before. */
  tellBack(run: () => void): void {
    if (!this.#isOpen) return;
    this.#back.push(run);
    this.#later(() => {
      if (this.#back[0] === run) this.#arrive();
      else this.#back = this.#back.filter((each) => each !== run);
    });
  }

  /** Asks the worker's end something. */
  askBack<Answer>(hear: () => Answer): Promise<Answer> {
    if (!this.#isOpen) return Promise.reject(new LinkLost("not connected"));
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    this.#failing.add(reject);
    this.tellBack(() => {
      const answer = hear();
      this.#send(() => {
        this.#failing.delete(reject);
        resolve(answer);
      });
    });
    return promise;
  }

  /** The other end is killed: what it has sent arrives, all else is lost until there is another. */
  lose(): void {
    while (this.#back.length > 0) this.#arrive();
    this.#isOpen = false;
    const failing = [...this.#failing];
    this.#failing.clear();
    for (const fail of failing) fail(new LinkLost("lost by the test"));
  }

  #arrive(): void {
    this.#back.shift()?.();
  }

  #send(run: () => void): void {
    if (!this.#isOpen) return;
    const connection = this.#connections;
    this.#later(() => {
      // What was sent before its sender was killed arrives.
      if (connection === this.#connections) run();
    });
  }

  #deliver(kind: string, body: unknown): unknown {
    return this.#handlers?.[kind]?.(copyOf(body));
  }

  #ask<Answer>(kind: string, body: unknown): Promise<Answer> {
    if (!this.#isOpen) return Promise.reject(new LinkLost("not connected"));
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    this.#failing.add(reject);
    const end = (run: () => void): void =>
      this.tellBack(() => {
        this.#failing.delete(reject);
        run();
      });
    this.#send(() => {
      const answer = this.#deliver(kind, body);
      if (!(answer instanceof Promise)) return end(() => resolve(copyOf(answer) as Answer));
      answer.then(
        (late: unknown) => end(() => resolve(copyOf(late) as Answer)),
        (error: unknown) => end(() => reject(error)),
      );
    });
    return promise;
  }
}

function copyOf(value: unknown): unknown {
  return value === undefined ? undefined : JSON.parse(JSON.stringify(value));
}
