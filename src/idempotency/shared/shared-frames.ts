import type { AnswerFrames } from "./answer.ts";
import type { AnswerMemory } from "./answer-memory.ts";

/** A reader of the frames. */
export interface FrameReader {
  /** Number of batches that it has read. */
  position: number;
  /** Called when its unread batches are no longer held. */
  fallBehind(): void;
}

export interface SharedFramesOptions {
  readonly source: AnswerFrames;
  /** Most bytes that are held for readers that join or are slow. */
  readonly limitBytes: number;
  readonly memory: AnswerMemory;
  /** The current readers. */
  readonly readers: ReadonlySet<FrameReader>;
  /**
   * Called with the complete answer, or undefined when it is too large. The last frames are held
   * back until it resolves.
   */
  readonly onWhole: (text: string | undefined) => Promise<void>;
  /** Called when the answer ended with an error. */
  readonly onFailed: () => void;
}

interface Batch {
  readonly text: string;
  readonly bytes: number;
  /** Whether the memory of all calls counts it. */
  readonly isCounted: boolean;
}

/** Most text that a reader gets at once, apart from the last batch. */
const catchUpCharacters = 16_384;
/** What a call may hold without being counted: about as much as is in flight anyway. */
const passingBytes = 16_384;

/**
 * The frames of one answer for several readers. A reader that has read everything takes from the
 * source, so the fastest sets the pace. All frames are held for readers that join; once the answer
 * outgrows the limit, only the frames that slow readers still need, as far as memory allows.
 */
export class SharedFrames {
  readonly #options: SharedFramesOptions;
  readonly #waiting = new Map<FrameReader, () => void>();
  #batches: Batch[] = [];
  /** Number of batches that were dropped before the first that is held. */
  #dropped = 0;
  #heldBytes = 0;
  /** Bytes taken from the memory of all calls. */
  #takenBytes = 0;
  #isReleased = false;
  #isTooLarge = false;
  /** Whether the last frames are held back until the answer is kept. */
  #isKeeping = false;
  #isEnded = false;
  /** Why the answer could not be kept. */
  #keepFailure: { readonly error: unknown } | undefined;

  constructor(options: SharedFramesOptions) {
    this.#options = options;
  }

  /** Whether the beginning is no longer held, so no reader can join. */
  get isTooLarge(): boolean {
    return this.#isTooLarge;
  }

  /** Whether no more frames will come. */
  get isEnded(): boolean {
    return this.#isEnded;
  }

  get isEmpty(): boolean {
    return this.#end === 0;
  }

  /** The next frames for a reader; undefined while there are none, and at the end. */
  take(reader: FrameReader): string | undefined {
    const text = this.#read(reader);
    if (text !== undefined) return text;
    if (this.#keepFailure !== undefined) throw this.#keepFailure.error;
    if (this.#isEnded || this.#isKeeping) return undefined;
    this.#pull();
    return this.#read(reader);
  }

  /** As `Flow.whenReady`, for each reader. */
  whenReady(reader: FrameReader, call: () => void): void {
    this.#waiting.set(reader, call);
    if (!this.#isKeeping) this.#options.source.whenReady(this.#wake);
  }

  /** The reader no longer waits. */
  forget(reader: FrameReader): void {
    this.#waiting.delete(reader);
  }

  /** Gives the memory back when there are no readers. */
  release(): void {
    this.#isReleased = true;
    this.#isEnded = true;
    this.#batches = [];
    this.#giveBack();
  }

  get #end(): number {
    return this.#dropped + this.#batches.length;
  }

  readonly #wake = (): void => {
    const calls = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const call of calls) call();
  };

  /** The frames that the reader has not read. */
  #read(reader: FrameReader): string | undefined {
    let text: string | undefined;
    while (reader.position < this.#end && (text?.length ?? 0) < catchUpCharacters) {
      const batch = this.#batches[reader.position - this.#dropped];
      if (batch === undefined) break;
      text = (text ?? "") + batch.text;
      reader.position += 1;
    }
    if (this.#isTooLarge) this.#dropRead();
    return text;
  }

  /** Takes everything that the source has. */
  #pull(): void {
    const { source, onFailed } = this.#options;
    const text = source.take();
    if (text === undefined && !source.isOver) return;
    if (text === undefined) {
      this.#isEnded = true;
      return onFailed();
    }
    const bytes = Buffer.byteLength(text);
    const batch = { text, bytes, isCounted: this.#claim(bytes) };
    if (source.ending === "whole") return void this.#keep(batch);
    this.#add(batch);
    if (source.ending !== "failed") return;
    this.#isEnded = true;
    onFailed();
  }

  async #keep(last: Batch): Promise<void> {
    this.#isKeeping = true;
    try {
      await this.#options.onWhole(this.#isTooLarge ? undefined : this.#text() + last.text);
      this.#add(last);
    } catch (error) {
      this.#keepFailure = { error };
    }
    this.#isKeeping = false;
    this.#isEnded = true;
    this.#wake();
  }

  #add(batch: Batch): void {
    if (this.#isReleased) return;
    this.#batches.push(batch);
    this.#heldBytes += batch.bytes;
  }

  /**
   * Makes room for one more batch and returns whether the memory of all calls counts it. Without
   * room the answer becomes too large, and the slowest readers are dropped.
   */
  #claim(bytes: number): boolean {
    if (this.#isTooLarge) this.#dropRead();
    if (this.#tryTake(bytes)) return true;
    this.#isTooLarge = true;
    this.#dropRead();
    while (!this.#tryTake(bytes)) {
      const uncountedBytes = this.#heldBytes - this.#takenBytes + bytes;
      if (this.#fits(bytes) && uncountedBytes <= passingBytes) return false;
      if (!this.#dropSlowestReader()) return false;
      this.#dropRead();
    }
    return true;
  }

  #fits(bytes: number): boolean {
    return this.#heldBytes + bytes <= this.#options.limitBytes;
  }

  #tryTake(bytes: number): boolean {
    if (!this.#fits(bytes) || !this.#options.memory.tryTake(bytes)) return false;
    this.#takenBytes += bytes;
    return true;
  }

  #giveBack(): void {
    this.#options.memory.giveBack(this.#takenBytes);
    this.#takenBytes = 0;
  }

  #text(): string {
    return this.#batches.map(({ text }) => text).join("");
  }

  /** Drops the batches that all readers have read. */
  #dropRead(): void {
    let slowest = this.#end;
    for (const { position } of this.#options.readers) slowest = Math.min(slowest, position);
    for (const { bytes, isCounted } of this.#batches.splice(0, slowest - this.#dropped)) {
      this.#heldBytes -= bytes;
      this.#dropped += 1;
      if (!isCounted) continue;
      this.#takenBytes -= bytes;
      this.#options.memory.giveBack(bytes);
    }
  }

  /** False when no batch is held; a single reader is never dropped. */
  #dropSlowestReader(): boolean {
    const { readers } = this.#options;
    if (this.#batches.length === 0 || readers.size < 2) return false;
    for (const reader of readers) {
      if (reader.position > this.#dropped) continue;
      reader.fallBehind();
      return true;
    }
    return false;
  }
}
