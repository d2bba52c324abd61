import type { Clock } from "../../domain/clock.ts";
import { BrokenFrame, encodeFrame, FrameReader, type Encoding, type Frame } from "./frame.ts";
import { errorOf, factsOf, LinkLost } from "./link-errors.ts";

/** Both ends of a link have to speak the same protocol. Raise it when a message changes. */
export const protocol = 1;

/** The messages that one side sends, by kind. A note has no answer. */
export type Messages = Readonly<
  Record<string, { readonly ask: unknown; readonly answer?: unknown }>
>;

/** What a side does with the messages it gets. What is thrown becomes the answer of an ask. */
export type Handlers<Heard extends Messages> = {
  readonly [Kind in keyof Heard]: (
    body: Heard[Kind]["ask"],
  ) => Heard[Kind]["answer"] | Promise<Heard[Kind]["answer"]>;
};

/** A stream of bytes to the other side. Bytes that were not taken are sent after `drained`. */
export interface ByteChannel {
  /** Returns how many bytes were taken. */
  write(bytes: Uint8Array): number;
  close(): void;
}

export interface LinkOptions<Heard extends Messages> {
  readonly channel: ByteChannel;
  readonly clock: Clock;
  readonly handlers: Handlers<Heard>;
  /** What this side says of itself when the link opens. */
  readonly hello: unknown;
  /** Called once, with the other side's hello. */
  readonly onOpen: (hello: unknown) => void;
  /** Called once; every open ask has failed by then. */
  readonly onLost: (reason: LinkLost) => void;
  /** Kinds that are sent as JSON, because a call waits for them. */
  readonly jsonKinds?: ReadonlySet<string>;
  /** Called before messages leave; what `sendFirst` is given then leaves before them. */
  readonly beforeFlush?: () => void;
}

/** Longest wait for an answer. */
const answerTimeoutMs = 5_000;
/** Bytes that wait for the other side; with more, asks fail and notes are dropped. */
const waitingLimitBytes = 64 * 1024 * 1024;
const sequences = 2 ** 32;

interface OpenAsk {
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: unknown) => void;
  readonly stopTimer: () => void;
}

/**
 * One end of a connection between two processes of a gateway: asks that are answered, and notes that
 * are not. Messages of one turn of the event loop are one write.
 */
export class Link<Sent extends Messages, Heard extends Messages> {
  readonly #options: LinkOptions<Heard>;
  readonly #reader = new FrameReader();
  readonly #asks = new Map<number, OpenAsk>();
  #waiting: Uint8Array[] = [];
  #waitingBytes = 0;
  #sequence = 0;
  #isFlushPlanned = false;
  /** The channel took less than it was given; `drained` follows. */
  #isFull = false;
  /** The first of what waits is the rest of what the channel has begun to take. */
  #hasRest = false;
  #isFlushing = false;
  #isOpen = false;
  #lost: LinkLost | undefined;
  #droppedNotes = 0;

  constructor(options: LinkOptions<Heard>) {
    this.#options = options;
    const body = { protocol, hello: options.hello };
    this.#send({ type: "hello", encoding: "clone", sequence: 0, body });
  }

  /** Notes that found too many bytes waiting. */
  get droppedNotes(): number {
    return this.#droppedNotes;
  }

  get isLost(): boolean {
    return this.#lost !== undefined;
  }

  /**
   * Rejects with what the other side threw; with `LinkLost` when the link ends, is full or no answer
   * came in time: then nobody knows whether the other side acted.
   */
  ask<Kind extends keyof Sent & string>(
    kind: Kind,
    body: Sent[Kind]["ask"],
    timeoutMs: number = answerTimeoutMs,
  ): Promise<Sent[Kind]["answer"]> {
    if (this.#lost !== undefined) return Promise.reject(this.#lost);
    if (this.#waitingBytes > waitingLimitBytes) {
      return Promise.reject(new LinkLost("the other process does not read"));
    }
    this.#sequence = (this.#sequence + 1) % sequences;
    const sequence = this.#sequence;
    const { promise, resolve, reject } = Promise.withResolvers<Sent[Kind]["answer"]>();
    const stopTimer = this.#options.clock.schedule(() => {
      this.#asks.delete(sequence);
      reject(new LinkLost(`no answer within ${timeoutMs} ms`));
    }, timeoutMs);
    try {
      this.#send({
        type: "ask",
        encoding: this.#encodingOf(kind),
        sequence,
        body: { kind, ask: body },
      });
    } catch (error) {
      stopTimer();
      return Promise.reject(error);
    }
    this.#asks.set(sequence, { resolve, reject, stopTimer });
    return promise;
  }

  /** Sends a note, unless the link is lost or full. */
  tell<Kind extends keyof Sent & string>(kind: Kind, body: Sent[Kind]["ask"]): void {
    if (this.#lost !== undefined) return;
    if (this.#waitingBytes > waitingLimitBytes) {
      this.#droppedNotes += 1;
      return;
    }
    const encoding = this.#encodingOf(kind);
    this.#send({ type: "note", encoding, sequence: 0, body: { kind, ask: body } });
  }

  /** A note that is sent to several links. */
  encodeNote<Kind extends keyof Sent & string>(kind: Kind, body: Sent[Kind]["ask"]): Uint8Array {
    const encoding = this.#encodingOf(kind);
    return encodeFrame({ type: "note", encoding, sequence: 0, body: { kind, ask: body } });
  }

  /** Sends an encoded note at once, or in the write that begins now, before all that waits. */
  sendFirst(note: Uint8Array): void {
    if (this.#lost !== undefined) return;
    if (this.#waitingBytes > waitingLimitBytes)
      return this.close("the other process does not read");
    if (this.#isFlushing || this.#isFull || this.#hasRest) {
      this.#waiting.splice(this.#hasRest ? 1 : 0, 0, note);
      this.#waitingBytes += note.length;
      return;
    }
    const taken = this.#options.channel.write(note);
    if (taken === note.length) return;
    this.#waiting.unshift(note.subarray(taken));
    this.#waitingBytes += note.length - taken;
    this.#isFull = true;
    this.#hasRest = true;
  }

  /** For the channel: bytes have arrived. */
  received(bytes: Uint8Array): void {
    if (this.#lost !== undefined) return;
    try {
      for (const frame of this.#reader.read(bytes)) this.#hear(frame);
    } catch (error) {
      if (!(error instanceof BrokenFrame)) throw error;
      this.close(`the other process sent nonsense: ${error.message}`);
    }
  }

  /** For the channel: it has room again. */
  drained(): void {
    this.#isFull = false;
    this.#flush();
  }

  /** For the channel: it has ended. */
  ended(): void {
    this.#lose(new LinkLost("the other process has closed the link"));
  }

  close(reason = "the link was closed"): void {
    this.#flush();
    this.#lose(new LinkLost(reason));
    this.#options.channel.close();
  }

  #lose(reason: LinkLost): void {
    if (this.#lost !== undefined) return;
    reason.isCut = this.#reader.isInFrame;
    this.#lost = reason;
    this.#waiting = [];
    this.#waitingBytes = 0;
    const asks = [...this.#asks.values()];
    this.#asks.clear();
    for (const { stopTimer, reject } of asks) {
      stopTimer();
      reject(reason);
    }
    this.#options.onLost(reason);
  }

  #hear(frame: Frame): void {
    if (this.#lost !== undefined) return;
    if (frame.type === "hello") return this.#greeted(frame.body);
    if (!this.#isOpen) throw new BrokenFrame("a message came before the hello");
    const { sequence, encoding, body } = frame;
    switch (frame.type) {
      case "note":
        this.#handle(body).catch(() => undefined);
        return;
      case "ask":
        this.#handle(body).then(
          (answer) => this.#answer({ type: "answer", encoding, sequence, body: answer }),
          (error: unknown) =>
            this.#answer({ type: "failure", encoding: "json", sequence, body: factsOf(error) }),
        );
        return;
      case "answer":
        this.#takeAsk(sequence)?.resolve(body);
        return;
      case "failure":
        this.#takeAsk(sequence)?.reject(errorOf(body));
        return;
    }
  }

  #greeted(body: unknown): void {
    const isRight = isObject(body) && body["protocol"] === protocol && !this.#isOpen;
    if (!isRight) return this.close("the other process speaks another version of the protocol");
    this.#isOpen = true;
    this.#options.onOpen(body["hello"]);
  }

  async #handle(body: unknown): Promise<unknown> {
    const { kind, ask } = isObject(body) ? body : {};
    const { handlers } = this.#options;
    if (typeof kind !== "string" || !Object.hasOwn(handlers, kind)) {
      throw new TypeError(`there is no message of kind ${String(kind)}`);
    }
    return handlers[kind]?.(ask);
  }

  #answer(frame: Frame): void {
    if (this.#lost !== undefined) return;
    try {
      this.#send(frame);
    } catch (error) {
      // The answer is too large.
      this.#send({ ...frame, type: "failure", encoding: "json", body: factsOf(error) });
    }
  }

  #takeAsk(sequence: number): OpenAsk | undefined {
    const ask = this.#asks.get(sequence);
    this.#asks.delete(sequence);
    ask?.stopTimer();
    return ask;
  }

  #encodingOf(kind: string): Encoding {
    return this.#options.jsonKinds?.has(kind) === true ? "json" : "clone";
  }

  #send(frame: Frame): void {
    const bytes = encodeFrame(frame);
    this.#waiting.push(bytes);
    this.#waitingBytes += bytes.length;
    if (this.#isFlushPlanned || this.#isFull) return;
    this.#isFlushPlanned = true;
    setImmediate(() => {
      this.#isFlushPlanned = false;
      this.#flush();
    });
  }

  #flush(): void {
    if (this.#isFull || this.#waitingBytes === 0 || this.#lost !== undefined) return;
    this.#isFlushing = true;
    this.#options.beforeFlush?.();
    this.#isFlushing = false;
    const [first] = this.#waiting;
    if (first === undefined) return;
    const bytes = this.#waiting.length === 1 ? first : Buffer.concat(this.#waiting);
    const taken = this.#options.channel.write(bytes);
    this.#isFull = taken < bytes.length;
    this.#hasRest = this.#isFull;
    this.#waitingBytes = bytes.length - taken;
    this.#waiting = this.#isFull ? [bytes.subarray(taken)] : [];
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}
