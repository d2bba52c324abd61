import type { AnswerFrames } from "./answer.ts";
import type { AnswerMemory } from "./answer-memory.ts";

/** One who reads the frames: how many batches it has got. */
export interface FrameReader {
  position: number;
  /** It reads so slowly that what it has not got is not held any longer. */
  fallBehind(): void;
}

export interface SharedFramesOptions {
  readonly source: AnswerFrames;
  /** Most bytes that are held, for readers who join and for those who are slow. */
  readonly limitBytes: number;
  readonly memory: AnswerMemory;
  /** All who read now. */
  readonly readers: ReadonlySet<FrameReader>;
  /**
   * The answer is whole. Told all of it, or undefined when it is too large; its last frames are held
   * back until this resolves.
   */
  readonly onWhole: (text: string | undefined) => Promise<void>;
  /** The answer ended with an error. */
  readonly onFailed: () => void;
}

interface Batch {
  readonly text: string;
  readonly bytes: number;
  /** Whether the memory that all calls share counts it. */
  readonly isCounted: boolean;
}

/** About as much as is handed to a reader at once who has to catch up. */
const catchUpCharacters = 16_384;
/** What a call may hold beyond the memory of all calls: as much as is on its way to a reader anyway. */
const passingBytes = 16_384;

/**
 * The frames of one answer for several readers. Whoever has read all that is there asks the source
 * for more: so the fastest sets the pace, and nothing is fetched that nobody waits for. All of it is
 * held for those who join; an answer that outgrows the limit only for those who lag less than that,
 * as long as there is memory for it.
 */
export class SharedFrames {
  readonly #options: SharedFramesOptions;
  #batches: Batch[] = [];
  /** Batches that were dropped before the first that is held. */
  #dropped = 0;
  #heldBytes = 0;
  /** Of the memory that all calls share. */
  #takenBytes = 0;
  #isReleased = false;
  #isTooLarge = false;
  #isEnded = false;
  #pulling: Promise<void> | undefined;

  constructor(options: SharedFramesOptions) {
    this.#options = options;
  }

  /** Whether it has outgrown what is held: nobody can read it from the beginning any more. */
  get isTooLarge(): boolean {
    return this.#isTooLarge;
  }

  /** Whether there are no frames but those that can be read. */
  get isEnded(): boolean {
    return this.#isEnded;
  }

  get isEmpty(): boolean {
    return this.#end === 0;
  }

  /** What the reader has not got, or a part of it; undefined when it has all that is there. */
  read(reader: FrameReader): string | undefined {
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

  /** Resolves when there is more to read, or the end. */
  advance(): Promise<void> {
    this.#pulling ??= this.#pull().finally(() => {
      this.#pulling = undefined;
    });
    return this.#pulling;
  }

  /** Nobody reads any more. */
  release(): void {
    this.#isReleased = true;
    this.#isEnded = true;
    this.#batches = [];
    this.#giveBack();
  }

  get #end(): number {
    return this.#dropped + this.#batches.length;
  }

  async #pull(): Promise<void> {
    const { source, onFailed, onWhole } = this.#options;
    const text = await source.next();
    if (this.#isReleased) return;
    if (text === undefined) {
      this.#isEnded = true;
      onFailed();
      return;
    }
    const bytes = Buffer.byteLength(text);
    const batch = { text, bytes, isCounted: this.#claim(bytes) };
    if (source.ending === "whole") {
      await onWhole(this.#isTooLarge ? undefined : this.#text() + text);
      this.#isEnded = true;
    } else if (source.ending === "failed") {
      this.#isEnded = true;
      onFailed();
    }
    if (this.#isReleased) return;
    this.#batches.push(batch);
    this.#heldBytes += batch.bytes;
  }

  /**
   * Makes room for one more batch; whether the memory of all calls counts it. Without room the answer
   * is too large from here on, and those for whom most is held are left behind.
   */
  #claim(bytes: number): boolean {
    if (this.#isTooLarge) this.#dropRead();
    if (this.#tryTake(bytes)) return true;
    this.#isTooLarge = true;
    this.#dropRead();
    while (!this.#tryTake(bytes)) {
      const uncountedBytes = this.#heldBytes - this.#takenBytes + bytes;
      if (this.#fits(bytes) && uncountedBytes <= passingBytes) return false;
      if (!this.#leaveSlowestBehind()) return false;
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

  /** Drops what all readers have got. */
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

  /** False when nothing is held for anybody; who is alone holds up nobody. */
  #leaveSlowestBehind(): boolean {
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
