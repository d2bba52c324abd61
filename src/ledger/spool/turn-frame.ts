import { keptRouting } from "../../domain/usage/kept-routing.ts";
import type { OpenedCall, UsageRecord } from "../../domain/usage/usage.ts";
import { headerBytes, longestPayloadBytes, sealFrame } from "./frame.ts";
import {
  binaryVersion,
  capacityCodes,
  entryKinds,
  outcomeCodes,
  sourceCodes,
  type Delivered,
} from "./spool-record.ts";

const firstEntryAt = headerBytes + 1;
/** Bytes of a record without its id and routing; the longest kind has fewer. */
const mostFixedBytes = 160;
const mostBytesPerUnit = 3;
/** Texts whose encoding is cached: those of the keys, models and targets in use. */
const keptTexts = 4_096;

/**
 * The frame of the current turn. Records are encoded into one buffer as they arrive. A text that
 * they share, such as the key or the model, is in the frame once, and records refer to its number.
 * Each frame has its own texts, so damage to one frame affects no record of another.
 */
export class TurnFrame {
  #buffer = Buffer.alloc(64 * 1024);
  #view = viewOf(this.#buffer);
  #end = firstEntryAt;
  readonly #texts = new Map<string, KnownText>();
  /** Texts of this frame. */
  #textCount = 0;
  /** Changes when the numbers of texts become invalid. */
  #generation = 0;

  get isEmpty(): boolean {
    return this.#end === firstEntryAt;
  }

  get bytes(): number {
    return this.isEmpty ? 0 : this.#end;
  }

  /** Adds the record of an open call, with everything needed to bill it if it is interrupted. */
  open(call: OpenedCall): void {
    const [end, count] = [this.#end, this.#textCount];
    this.#call(entryKinds.open, call);
    this.#checkLength(end, count);
  }

  checkpoint(id: string, { outputTokens, at }: Delivered): void {
    this.#reserve(mostFixedBytes + id.length * mostBytesPerUnit);
    this.#byte(entryKinds.checkpoint);
    this.#shortText(id);
    this.#number(outputTokens);
    this.#number(at);
  }

  /**
   * Adds the record of an ended call. It is complete in itself, because its open record may be
   * damaged.
   */
  close(record: UsageRecord): void {
    const [end, count] = [this.#end, this.#textCount];
    const target = this.#textNumber(record.target);
    const code = this.#textNumber(record.code);
    this.#call(entryKinds.close, record);
    this.#integer(target);
    this.#integer(code);
    this.#number(record.outputTokens);
    this.#number(record.cachedInputTokens);
    this.#number(record.cacheWriteTokens);
    this.#number(record.status);
    this.#number(record.attempts);
    this.#number(record.firstEventMs);
    this.#number(record.durationMs);
    this.#byte(sourceCodes[record.usageSource]);
    this.#byte(outcomeCodes[record.outcome]);
    this.#flag(record.mayBeBilledTwice);
    const { routing } = record;
    this.#longText(routing === undefined ? "" : JSON.stringify(keptRouting(routing)));
    this.#checkLength(end, count);
  }

  /** Returns the whole frame, valid until the next record is added, and begins the next one. */
  take(): Uint8Array {
    this.#buffer[headerBytes] = binaryVersion;
    const frame = sealFrame(this.#buffer.subarray(0, this.#end));
    this.#end = firstEntryAt;
    this.#textCount = 0;
    this.#generation += 1;
    return frame;
  }

  /** The common part of records of open and ended calls. */
  #call(kind: number, call: OpenedCall): void {
    const environment = this.#textNumber(call.environment);
    const accountId = this.#textNumber(call.accountId);
    const applicationId = this.#textNumber(call.applicationId);
    const application = this.#textNumber(call.application);
    const keyId = this.#textNumber(call.keyId);
    const model = this.#textNumber(call.model);
    this.#reserve(mostFixedBytes + call.id.length * mostBytesPerUnit);
    this.#byte(kind);
    this.#shortText(call.id);
    this.#number(call.startedAt);
    this.#number(call.inputTokens);
    this.#number(call.reservedTokens);
    this.#integer(environment);
    this.#integer(accountId);
    this.#integer(applicationId);
    this.#integer(application);
    this.#integer(keyId);
    this.#integer(model);
    this.#byte(capacityCodes[call.capacityClass]);
    this.#flag(call.isStreamed);
  }

  /** Number of a text in this frame, to which it is added if needed; 0 for none. */
  #textNumber(text: string | undefined): number {
    if (text === undefined) return 0;
    let known = this.#texts.get(text);
    if (known === undefined) {
      if (this.#texts.size >= keptTexts) this.#texts.clear();
      known = { bytes: Buffer.from(text), generation: -1, number: 0 };
      this.#texts.set(text, known);
    }
    if (known.generation === this.#generation) return known.number;
    const { bytes } = known;
    this.#reserve(mostFixedBytes + bytes.length);
    this.#byte(entryKinds.text);
    this.#integer(bytes.length);
    this.#buffer.set(bytes, this.#end);
    this.#end += bytes.length;
    this.#textCount += 1;
    known.generation = this.#generation;
    known.number = this.#textCount;
    return known.number;
  }

  /** Removes a record that readers would reject, and throws a `RangeError`. */
  #checkLength(end: number, textCount: number): void {
    const bytes = this.#end - headerBytes;
    if (bytes <= longestPayloadBytes) return;
    this.#end = end;
    this.#textCount = textCount;
    this.#generation += 1;
    throw new RangeError(`a record that would make a frame of ${bytes} bytes`);
  }

  #reserve(bytes: number): void {
    const needed = this.#end + bytes;
    if (needed <= this.#buffer.length) return;
    const larger = Buffer.alloc(needed * 2);
    larger.set(this.#buffer.subarray(0, this.#end));
    this.#buffer = larger;
    this.#view = viewOf(larger);
  }

  #byte(value: number): void {
    this.#buffer[this.#end] = value;
    this.#end += 1;
  }

  /** 0: unknown. */
  #flag(value: boolean | undefined): void {
    this.#byte(value === undefined ? 0 : value ? 2 : 1);
  }

  #integer(value: number): void {
    this.#view.setUint32(this.#end, value, true);
    this.#end += 4;
  }

  /** Unknown values are NaN. */
  #number(value = Number.NaN): void {
    this.#view.setFloat64(this.#end, value, true);
    this.#end += 8;
  }

  /** For a text of a single record, for which there is room. */
  #shortText(text: string): void {
    const length = this.#buffer.write(text, this.#end + 4);
    this.#integer(length);
    this.#end += length;
  }

  #longText(text: string): void {
    this.#reserve(mostFixedBytes + text.length * mostBytesPerUnit);
    this.#shortText(text);
  }
}

interface KnownText {
  readonly bytes: Uint8Array;
  generation: number;
  number: number;
}

function viewOf({ buffer, byteOffset, byteLength }: Uint8Array): DataView {
  return new DataView(buffer, byteOffset, byteLength);
}
