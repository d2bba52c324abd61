import type { Clock } from "../domain/clock.ts";
import { RefusedRows, StorageUnavailable } from "../store/errors.ts";

/** The messages that one side sends, by kind. A note has no answer. */
export type Messages = Readonly<
  Record<string, { readonly ask: unknown; readonly answer?: unknown }>
>;

/** What a side does with the messages that it gets. What a handler throws answers an ask. */
export type Handlers<Heard extends Messages> = {
  readonly [Kind in keyof Heard]: (
    body: Heard[Kind]["ask"],
  ) => Heard[Kind]["answer"] | Promise<Heard[Kind]["answer"]>;
};

/** One end of a channel that copies messages, as the runtime does between threads. */
export interface Port {
  /** Does nothing once the other side has ended. */
  post(message: Message): void;
  /** Called once, in the turn in which the channel was opened. */
  listen(hear: (message: Message) => void): void;
}

/** The other thread has ended; it is unknown whether it acted. */
export class ThreadLost extends StorageUnavailable {
  override readonly name = "ThreadLost";
}

/** Why the process cannot start, in words for the operator. */
export class StartProblem extends Error {}

/** Longest wait for an answer. A message to a thread that has died is lost without a sign. */
const answerTimeoutMs = 5_000;

/** As it is sent: only links read what is in it. */
export type Message =
  | readonly [type: "note", kind: string, body: unknown]
  | readonly [type: "ask", kind: string, body: unknown, id: number]
  | readonly [type: "answer", body: unknown, id: number]
  | readonly [type: "failure", facts: ErrorFacts, id: number];

interface OpenAsk {
  resolve(answer: unknown): void;
  reject(error: unknown): void;
  stopTimer(): void;
}

/** One end of the link between the two threads of a gateway process. */
export class ThreadLink<Sent extends Messages, Heard extends Messages> {
  readonly #port: Port;
  readonly #clock: Pick<Clock, "schedule">;
  readonly #asks = new Map<number, OpenAsk>();
  #handlers: Partial<Handlers<Heard>> = {};
  #lastId = 0;
  #lost: ThreadLost | undefined;

  constructor(port: Port, clock: Pick<Clock, "schedule">) {
    this.#port = port;
    this.#clock = clock;
  }

  /** Begins to handle messages. Asks of other kinds fail. */
  handle(handlers: Partial<Handlers<Heard>>): void {
    this.#handlers = handlers;
    this.#port.listen((message) => this.#hear(message));
  }

  /** Rejects with what the handler threw, or with `ThreadLost`. */
  ask<Kind extends keyof Sent & string>(
    kind: Kind,
    body: Sent[Kind]["ask"],
    timeoutMs: number = answerTimeoutMs,
  ): Promise<Sent[Kind]["answer"]> {
    if (this.#lost !== undefined) return Promise.reject(this.#lost);
    const id = (this.#lastId += 1);
    const { promise, resolve, reject } = Promise.withResolvers<Sent[Kind]["answer"]>();
    const stopTimer = this.#clock.schedule(() => {
      this.#asks.delete(id);
      reject(new StorageUnavailable("no answer came in time"));
    }, timeoutMs);
    this.#asks.set(id, { resolve, reject, stopTimer });
    try {
      this.#port.post(["ask", kind, body, id]);
    } catch (error) {
      // It cannot be copied.
      this.#take(id)?.reject(error);
    }
    return promise;
  }

  tell<Kind extends keyof Sent & string>(kind: Kind, body: Sent[Kind]["ask"]): void {
    if (this.#lost === undefined) this.#port.post(["note", kind, body]);
  }

  /** The other side has ended: what is open fails, and so does what is asked from now on. */
  lose(reason: string): void {
    this.#lost ??= new ThreadLost(reason);
    for (const ask of this.#asks.values()) {
      ask.stopTimer();
      ask.reject(this.#lost);
    }
    this.#asks.clear();
  }

  #hear(message: Message): void {
    if (this.#lost !== undefined) return;
    switch (message[0]) {
      case "note":
        void this.#run(message[1], message[2]).catch(() => undefined);
        return;
      case "ask": {
        const [, kind, body, id] = message;
        const fail = (error: unknown): void => this.#port.post(["failure", factsOf(error), id]);
        void this.#run(kind, body)
          .then((answer) => this.#port.post(["answer", answer, id]))
          .catch(fail);
        return;
      }
      case "answer":
        return this.#take(message[2])?.resolve(message[1]);
      case "failure":
        return this.#take(message[2])?.reject(errorOf(message[1]));
    }
  }

  async #run(kind: string, body: unknown): Promise<unknown> {
    const handler = this.#handlers[kind];
    if (handler === undefined) throw new Error(`there is no answer to ${kind}`);
    return handler(body);
  }

  /** Undefined for one that was given up. */
  #take(id: number): OpenAsk | undefined {
    const ask = this.#asks.get(id);
    this.#asks.delete(id);
    ask?.stopTimer();
    return ask;
  }
}

/** Errors whose class callers depend on. */
const keptClasses = [RefusedRows, StorageUnavailable, StartProblem] as const;

/** An error as it is sent: the index of its class, if that is kept. */
interface ErrorFacts {
  readonly kept: number;
  readonly message: string;
}

function factsOf(error: unknown): ErrorFacts {
  const kept = keptClasses.findIndex((each) => error instanceof each);
  return { kept, message: error instanceof Error ? error.message : String(error) };
}

function errorOf({ kept, message }: ErrorFacts): Error {
  return new (keptClasses[kept] ?? Error)(message);
}
