import type { RecordFailure } from "../../domain/usage/usage.ts";
import type { CallEntry } from "./segment.ts";
import { headerBytes, sealFrame } from "./frame.ts";
import { writeCheckpoint, writeClose, writeOpen, type Delivered } from "./spool-record.ts";

/** Calls a function once, at the end of the current turn of the event loop. */
export type AtTurnEnd = (write: () => void) => void;

/** The records of a turn, which form one frame and are written or lost together. */
export interface TurnRecords {
  /** Valid until the next turn is taken. */
  readonly frame: Uint8Array;
  /** Calls whose open record is in the frame, and ended ones. */
  readonly opened: readonly CallEntry[];
  readonly ended: readonly CallEntry[];
  /** Resolves the promise that the callers wait for. */
  readonly resolve: (failure: RecordFailure) => void;
}

/** The most bytes that a unit of a text takes. */
const bytesPerUnit = 3;
const lineFeed = 0x0a;
/** A turn with more bytes is written in several parts, far below what readers take. */
const longestTurn = 256 * 1024;

/** The records of one turn of the event loop, until they are written at its end. */
export class Turn {
  readonly #atTurnEnd: AtTurnEnd;
  readonly #write: () => void;
  /** Room for the header, then the lines of its records. */
  #frame = Buffer.alloc(64 * 1024);
  #end = headerBytes;
  #opened: CallEntry[] = [];
  #ended: CallEntry[] = [];
  #written: PromiseWithResolvers<RecordFailure> | undefined;
  #isEndAwaited = false;
  readonly #atEnd = (): void => {
    this.#isEndAwaited = false;
    this.#write();
  };

  /** `write` is called at the end of each turn that has records, and takes them. */
  constructor(atTurnEnd: AtTurnEnd, write: () => void) {
    this.#atTurnEnd = atTurnEnd;
    this.#write = write;
  }

  /** The bytes of its lines. */
  get length(): number {
    return this.#end - headerBytes;
  }

  /** Ended calls that are not written yet. */
  get ended(): readonly CallEntry[] {
    return this.#ended;
  }

  /**
   * Adds everything that a replay needs about a call. All records of the turn share the promise.
   */
  add(entry: CallEntry): Promise<RecordFailure> {
    const { call, delivered, record } = entry;
    if (record !== undefined) {
      this.#append(writeClose(record));
      this.#ended.push(entry);
    } else if (call !== undefined) {
      this.#append(writeOpen(call));
      this.#opened.push(entry);
      if (delivered !== undefined) this.#append(writeCheckpoint(call.id, delivered));
    }
    return this.#awaitEnd();
  }

  checkpoint(callId: string, delivered: Delivered): void {
    this.#append(writeCheckpoint(callId, delivered));
    void this.#awaitEnd();
  }

  /** Undefined when nothing was recorded. */
  take(): TurnRecords | undefined {
    const written = this.#written;
    if (written === undefined) return undefined;
    const [frame, opened, ended] = [this.#frame.subarray(0, this.#end), this.#opened, this.#ended];
    this.#end = headerBytes;
    this.#opened = [];
    this.#ended = [];
    this.#written = undefined;
    return { frame: sealFrame(frame), opened, ended, resolve: written.resolve };
  }

  /** Encodes each line at once: a text of all of them would be one more copy. */
  #append(line: string): void {
    const most = this.#end + line.length * bytesPerUnit + 1;
    if (most > this.#frame.length) {
      const grown = Buffer.alloc(2 * most);
      this.#frame.copy(grown, 0, 0, this.#end);
      this.#frame = grown;
    }
    this.#end += this.#frame.write(line, this.#end);
    this.#frame[this.#end] = lineFeed;
    this.#end += 1;
  }

  #awaitEnd(): Promise<RecordFailure> {
    const { promise } = (this.#written ??= Promise.withResolvers());
    if (this.length > longestTurn) {
      this.#write();
    } else if (!this.#isEndAwaited) {
      this.#isEndAwaited = true;
      this.#atTurnEnd(this.#atEnd);
    }
    return promise;
  }
}
