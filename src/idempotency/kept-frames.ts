import { GatewayError } from "../domain/errors/gateway-error.ts";
import { WaitingReader } from "../domain/waiting/flow.ts";
import type { EndSignal } from "../domain/waiting/end-signal.ts";
import type { FrameSource } from "../edge/replies/event-stream.ts";
import type { AnswerFrames } from "./answer.ts";

/** Bytes of answers held to be kept, for all calls of the process together. */
export class AnswerMemory {
  readonly #limitBytes: () => number;
  #heldBytes = 0;

  constructor(limitBytes: () => number) {
    this.#limitBytes = limitBytes;
  }

  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** False when there is no room. */
  tryTake(bytes: number): boolean {
    if (this.#heldBytes + bytes > this.#limitBytes()) return false;
    this.#heldBytes += bytes;
    return true;
  }

  giveBack(bytes: number): void {
    this.#heldBytes -= bytes;
  }
}

export interface KeptFramesOptions {
  readonly source: AnswerFrames;
  /** Of the call: it ends when the caller leaves, and when the gateway ends it. */
  readonly signal: EndSignal;
  /** Largest answer that is kept. */
  readonly limitBytes: number;
  readonly memory: AnswerMemory;
  /** Keeps the whole text; undefined: it is too large. Never rejects. */
  readonly keep: (text: string | undefined) => Promise<void>;
  /** Called when the answer ends without being whole. */
  readonly onFailed: () => void;
}

/**
 * The frames of a streamed answer, which passes unchanged. Its text is collected, and its last
 * frames are held back until it is kept, so a caller that has seen the end can rely on the replay.
 */
export class KeptFrames implements FrameSource {
  readonly #options: KeptFramesOptions;
  readonly #reader = new WaitingReader();
  /** Undefined once the answer is too large. */
  #texts: string[] | undefined = [];
  #takenBytes = 0;
  /** The last frames, once the answer is kept. */
  #last: string | undefined;
  #state: "passing" | "keeping" | "kept" | "over" = "passing";
  readonly #onLeft = (): void => {
    // A call that the gateway ends has its own error frame.
    if (!(this.#options.signal.reason instanceof GatewayError)) this.cancel();
  };

  constructor(options: KeptFramesOptions) {
    this.#options = options;
    const { signal } = options;
    if (signal.aborted) this.#onLeft();
    else signal.addEventListener("abort", this.#onLeft, { once: true });
  }

  get isOver(): boolean {
    return this.#state === "over";
  }

  take(): string | undefined {
    if (this.#state === "kept") {
      this.#state = "over";
      return this.#last;
    }
    return this.#state === "passing" ? this.#pass() : undefined;
  }

  whenReady(call: () => void): void {
    this.#reader.whenReady(call);
    if (this.#state === "passing") this.#options.source.whenReady(this.#reader.wake);
    else if (this.#state !== "keeping") this.#reader.wake();
  }

  /** An answer that is being kept is kept nevertheless. */
  cancel(): void {
    if (this.#state === "passing") {
      this.#options.source.cancel();
      this.#fail();
    }
    this.#state = "over";
  }

  #pass(): string | undefined {
    const { source } = this.#options;
    const text = source.take();
    if (text === undefined) {
      if (source.isOver) this.#fail();
      return undefined;
    }
    this.#collect(text);
    if (source.ending === "whole") {
      void this.#keep(text);
      return undefined;
    }
    if (source.ending === "failed") this.#fail();
    return text;
  }

  #collect(text: string): void {
    if (this.#texts === undefined) return;
    const { limitBytes, memory } = this.#options;
    const bytes = Buffer.byteLength(text);
    if (this.#takenBytes + bytes > limitBytes || !memory.tryTake(bytes)) {
      this.#drop();
      return;
    }
    this.#takenBytes += bytes;
    this.#texts.push(text);
  }

  async #keep(last: string): Promise<void> {
    this.#state = "keeping";
    const text = this.#texts?.join("");
    this.#settle();
    await this.#options.keep(text);
    // The caller may have left meanwhile.
    if (this.#state !== "keeping") return;
    this.#last = last;
    this.#state = "kept";
    this.#reader.wake();
  }

  #fail(): void {
    this.#state = "over";
    this.#settle();
    this.#options.onFailed();
  }

  #settle(): void {
    this.#drop();
    this.#options.signal.removeEventListener("abort", this.#onLeft);
  }

  #drop(): void {
    this.#texts = undefined;
    this.#options.memory.giveBack(this.#takenBytes);
    this.#takenBytes = 0;
  }
}
