import type { Clock } from "../../domain/clock.ts";
import { BrokenFrame, FrameReader, type Message, type MessageType } from "./frame.ts";
import { errorOf, factsOf, LinkLost } from "./link-errors.ts";
import { OpenAsks } from "./open-asks.ts";
import { Outbox, type ByteChannel, type Later } from "./outbox.ts";

/** Both ends of a link must use the same protocol. Raise it when a message changes. */
export const protocol = 6;

/** The messages that one side sends, by kind. A note has no answer. */
export type Messages = Readonly<
  Record<string, { readonly ask: unknown; readonly answer?: unknown }>
>;

/**
 * How a side handles the messages it receives. What a handler throws becomes the answer of an ask.
 */
export type Handlers<Heard extends Messages> = {
  readonly [Kind in keyof Heard]: (
    body: Heard[Kind]["ask"],
  ) => Heard[Kind]["answer"] | Promise<Heard[Kind]["answer"]>;
};

export interface LinkOptions<Heard extends Messages> {
  readonly channel: ByteChannel;
  readonly clock: Clock;
  /** Default: that of this process. */
  readonly later?: Later;
  readonly handlers: Handlers<Heard>;
  /** What this side reports about itself when the link opens. */
  readonly hello: unknown;
  /** Called once, with the hello of the other side. */
  readonly onOpen: (hello: unknown) => void;
  /** Called once, after every open ask has failed. */
  readonly onLost: (reason: LinkLost) => void;
}

/** Longest wait for an answer. */
const answerTimeoutMs = 5_000;

/**
 * One end of a connection between two processes of a gateway. Asks are answered, notes are not. All
 * messages of one turn of the event loop are one write.
 */
export class Link<Sent extends Messages, Heard extends Messages> {
  readonly #options: LinkOptions<Heard>;
  readonly #reader = new FrameReader();
  readonly #asks: OpenAsks;
  readonly #outbox: Outbox;
  #isOpen = false;
  #lost: LinkLost | undefined;

  constructor(options: LinkOptions<Heard>) {
    this.#options = options;
    this.#asks = new OpenAsks(options.clock);
    this.#outbox = new Outbox(options.channel, options.later);
    this.#outbox.add(["hello", 0, "", { protocol, hello: options.hello }]);
  }

  get isLost(): boolean {
    return this.#lost !== undefined;
  }

  /**
   * Rejects with what the other side threw, or with `LinkLost` when the link ends, is full or no
   * answer arrives in time: then it is unknown whether the other side acted.
   */
  ask<Kind extends keyof Sent & string>(
    kind: Kind,
    body: Sent[Kind]["ask"],
    timeoutMs: number = answerTimeoutMs,
  ): Promise<Sent[Kind]["answer"]> {
    if (!this.#canSend()) return Promise.reject(this.#lost);
    return this.#asks.open(timeoutMs, (sequence) =>
      this.#outbox.add(["ask", sequence, kind, body]),
    );
  }

  /** Sends a note, unless the link is lost. A link that cannot carry a message ends. */
  tell<Kind extends keyof Sent & string>(kind: Kind, body: Sent[Kind]["ask"]): void {
    if (this.#canSend()) this.#outbox.add(["note", 0, kind, body]);
  }

  /** Called by the channel when bytes have arrived. */
  received(bytes: Uint8Array): void {
    if (this.#lost !== undefined) return;
    try {
      this.#reader.read(bytes, this.#hear);
    } catch (error) {
      if (!(error instanceof BrokenFrame)) throw error;
      this.close(`the other process sent invalid data: ${error.message}`);
    }
  }

  /** Called by the channel when it can take more. */
  drained(): void {
    if (this.#lost === undefined) this.#outbox.drained();
  }

  /** Called by the channel when it has ended. */
  ended(): void {
    this.#lose(new LinkLost("the other process has closed the link"));
  }

  close(reason = "the link was closed"): void {
    if (this.#lost === undefined) this.#outbox.flush();
    this.#lose(new LinkLost(reason));
    this.#options.channel.close();
  }

  #canSend(): boolean {
    if (this.#lost === undefined && this.#outbox.isFull) {
      this.close("the other process does not read");
    }
    return this.#lost === undefined;
  }

  #lose(reason: LinkLost): void {
    if (this.#lost !== undefined) return;
    this.#lost = reason;
    reason.isCut = this.#reader.isInFrame;
    this.#outbox.clear();
    this.#asks.failAll(reason);
    this.#options.onLost(reason);
  }

  readonly #hear = ([type, sequence, kind, body]: Message): void => {
    if (this.#lost !== undefined) return;
    if (type === "hello") return this.#greeted(body);
    if (!this.#isOpen) throw new BrokenFrame("a message came before the hello");
    switch (type) {
      case "note":
        return this.#handle(kind, body, () => undefined);
      case "ask":
        return this.#handle(kind, body, (answerType, answer) =>
          this.#answer([answerType, sequence, "", answer]),
        );
      case "answer":
        return this.#asks.take(sequence)?.resolve(body);
      case "failure":
        return this.#asks.take(sequence)?.reject(errorOf(body));
    }
  };

  #greeted(body: unknown): void {
    const isRight = isObject(body) && body["protocol"] === protocol && !this.#isOpen;
    if (!isRight) return this.close("the other process speaks another version of the protocol");
    this.#isOpen = true;
    this.#options.onOpen(body["hello"]);
  }

  /** Handlers that answer synchronously are answered without a promise. */
  #handle(kind: string, ask: unknown, answer: Reply): void {
    const fail = (error: unknown): void => answer("failure", factsOf(error));
    const { handlers } = this.#options;
    if (!Object.hasOwn(handlers, kind)) {
      return fail(new TypeError(`there is no message of kind ${kind}`));
    }
    try {
      const answered: unknown = handlers[kind]?.(ask);
      if (answered instanceof Promise) answered.then((value) => answer("answer", value), fail);
      else answer("answer", answered);
    } catch (error) {
      fail(error);
    }
  }

  #answer(message: Message): void {
    if (!this.#canSend()) return;
    try {
      this.#outbox.add(message);
    } catch (error) {
      // The answer is too large.
      this.#outbox.add(["failure", message[1], "", factsOf(error)]);
    }
  }
}

type Reply = (type: MessageType, body: unknown) => void;

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}
