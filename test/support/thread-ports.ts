import type { Message, Port } from "../../src/process/thread-link.ts";

/** Both ends of a link within one thread: values are copied as between threads. */
export function portsInThread(): readonly [Port, Port] {
  const [one, other] = [new ThreadPort(), new ThreadPort()];
  one.other = other;
  other.other = one;
  return [one, other];
}

class ThreadPort implements Port {
  other: ThreadPort | undefined;
  #hear: ((message: Message) => void) | undefined;
  readonly #waiting: Message[] = [];

  post(message: Message): void {
    const copy = structuredClone(message);
    queueMicrotask(() => this.other?.receive(copy));
  }

  listen(hear: (message: Message) => void): void {
    this.#hear = hear;
    for (const message of this.#waiting.splice(0)) hear(message);
  }

  receive(message: Message): void {
    if (this.#hear === undefined) this.#waiting.push(message);
    else this.#hear(message);
  }
}
