import type { RecordFailure } from "../../domain/usage/usage.ts";
import type { CallEntry } from "./segment.ts";
import { headerBytes, longestPayloadBytes, sealFrame } from "./frame.ts";
import { writeRecord, type Delivered, type SpoolRecord } from "./spool-record.ts";

/** Calls a function once, at the end of the current turn of the event loop. */
export type AtTurnEnd = (write: () => void) => void;

/** The records of a turn, which form one frame and are written or lost together. */
export interface TurnRecords {
  /** Valid until the next record is added. */
  readonly frame: Uint8Array;
  /** Calls whose open record is in the frame, and ended ones. */
  readonly opened: readonly CallEntry[];
  readonly ended: readonly CallEntry[];
  /** Resolves the promise that the callers wait for. */
  readonly resolve: (failure: RecordFailure) => void;
}

const mostBytesPerUnit = 3;
/** A turn with more bytes is written in several parts. */
const longestTurnBytes = 256 * 1024;

/** The records of one turn of the event loop, until they are written at its end. */
export class Turn {
  readonly #frame = new TurnFrame();
  readonly #atTurnEnd: AtTurnEnd;
  readonly #write: () => void;
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

  get bytes(): number {
    return this.#frame.bytes;
  }

  /** Ended calls that are not written yet. */
  get ended(): readonly CallEntry[] {
    return this.#ended;
  }

  /**
   * Adds everything that a replay needs about a call. All records of the turn share the promise.
   * Throws a `RangeError` for a record that readers would reject.
   */
  add(entry: CallEntry): Promise<RecordFailure> {
    const { call, delivered, record } = entry;
    if (record !== undefined) {
      this.#frame.add({ kind: "close", record });
      this.#ended.push(entry);
    } else if (call !== undefined) {
      this.#frame.add({ kind: "open", call });
      this.#opened.push(entry);
      if (delivered !== undefined) this.#add(call.id, delivered);
    }
    return this.#awaitEnd();
  }

  checkpoint(callId: string, delivered: Delivered): void {
    this.#add(callId, delivered);
    void this.#awaitEnd();
  }

  /** Undefined when nothing was recorded. */
  take(): TurnRecords | undefined {
    const written = this.#written;
    if (written === undefined) return undefined;
    const [opened, ended] = [this.#opened, this.#ended];
    this.#opened = [];
    this.#ended = [];
    this.#written = undefined;
    return { frame: this.#frame.take(), opened, ended, resolve: written.resolve };
  }

  #add(id: string, delivered: Delivered): void {
    this.#frame.add({ kind: "checkpoint", id, delivered });
  }

  #awaitEnd(): Promise<RecordFailure> {
    const { promise } = (this.#written ??= Promise.withResolvers());
    if (this.#frame.bytes > longestTurnBytes) {
      this.#write();
    } else if (!this.#isEndAwaited) {
      this.#isEndAwaited = true;
      this.#atTurnEnd(this.#atEnd);
    }
    return promise;
  }
}

/** The frame of the current turn. The lines of its records are put into one buffer as they arrive. */
class TurnFrame {
  #buffer = Buffer.alloc(64 * 1024);
  #end = headerBytes;

  get bytes(): number {
    return this.#end === headerBytes ? 0 : this.#end;
  }

  /** Throws a `RangeError` for a record that readers would reject. */
  add(record: SpoolRecord): void {
    const line = writeRecord(record);
    this.#reserve(line.length * mostBytesPerUnit);
    const end = this.#end + this.#buffer.write(line, this.#end);
    if (end - headerBytes > longestPayloadBytes) {
      throw new RangeError(`a record that would make a frame of ${end - headerBytes} bytes`);
    }
    this.#end = end;
  }

  /** Returns the whole frame, valid until the next record is added, and begins the next one. */
  take(): Uint8Array {
    const frame = sealFrame(this.#buffer.subarray(0, this.#end));
    this.#end = headerBytes;
    return frame;
  }

  #reserve(bytes: number): void {
    const needed = this.#end + bytes;
    if (needed <= this.#buffer.length) return;
    const larger = Buffer.alloc(needed * 2);
    larger.set(this.#buffer.subarray(0, this.#end));
    this.#buffer = larger;
  }
}
