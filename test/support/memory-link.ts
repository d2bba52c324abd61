import { LinkLost } from "../../src/process/link/link-errors.ts";
import type { Handlers, Messages } from "../../src/process/link/link.ts";
import type { CoordinationMessages } from "../../src/process/link/messages.ts";
import type { CoordinationLink } from "../../src/process/worker/control-link.ts";

/** A worker's link to control in one process, whose messages arrive at once, as JSON. */
export class MemoryLink {
  readonly link: CoordinationLink = {
    ask: (kind, body) => this.#ask(kind, body),
    onReplaced: () => undefined,
    tell: (kind, body) => void this.#deliver(kind, body),
  };
  #handlers: Partial<Handlers<Messages>> | undefined;
  readonly #open = new Set<(error: LinkLost) => void>();

  /** `handlers`: those of control's end. */
  connect(handlers: Partial<Handlers<CoordinationMessages>>): void {
    this.#handlers = handlers as Partial<Handlers<Messages>>;
  }

  /** Asks fail, and notes are lost, until it is connected again. */
  lose(): void {
    this.#handlers = undefined;
    const open = [...this.#open];
    this.#open.clear();
    for (const reject of open) reject(new LinkLost("lost by the test"));
  }

  #deliver(kind: string, body: unknown): unknown {
    return this.#handlers?.[kind]?.(copyOf(body));
  }

  async #ask<Answer>(kind: string, body: unknown): Promise<Answer> {
    if (this.#handlers === undefined) throw new LinkLost("not connected");
    const { promise: lost, reject } = Promise.withResolvers<never>();
    this.#open.add(reject);
    try {
      const answer = Promise.resolve(this.#deliver(kind, body)).then(copyOf);
      return (await Promise.race([answer, lost])) as Answer;
    } finally {
      this.#open.delete(reject);
    }
  }
}

function copyOf(value: unknown): unknown {
  return value === undefined ? undefined : JSON.parse(JSON.stringify(value));
}
