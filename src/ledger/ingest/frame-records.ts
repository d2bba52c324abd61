import { readRouting } from "../../domain/usage/kept-routing.ts";
import type { CallRouting } from "../../domain/usage/call-routing.ts";
import type { OpenedCall, UsageRecord } from "../../domain/usage/usage.ts";
import {
  binaryVersion,
  capacityCodes,
  entryKinds,
  outcomeCodes,
  sourceCodes,
  type SpoolRecord,
} from "../spool/spool-record.ts";
import { readJsonRecord } from "./json-record.ts";

/** The records of one frame. */
export interface FrameRecords {
  /** Bytes that were not read. */
  readonly unreadBytes: number;
  /** Undefined at the end, and at data that no version writes: then bytes remain unread. */
  next(): SpoolRecord | undefined;
}

export function readFrame(payload: Buffer): FrameRecords {
  return payload[0] === binaryVersion ? new BinaryRecords(payload) : new JsonFrame(payload);
}

/** A later version numbers its format below the first byte of a text. */
export function isOfLaterVersion(payload: Buffer): boolean {
  const version = payload[0] ?? 0;
  return version > binaryVersion && version < firstOfText;
}

/** A frame of an earlier version, which has one record. */
class JsonFrame implements FrameRecords {
  readonly #payload: Buffer;
  unreadBytes: number;

  constructor(payload: Buffer) {
    this.#payload = payload;
    this.unreadBytes = payload.length;
  }

  next(): SpoolRecord | undefined {
    if (this.unreadBytes === 0) return undefined;
    const record = readJsonRecord(this.#payload.toString());
    if (record !== undefined) this.unreadBytes = 0;
    return record;
  }
}

const firstOfText = 0x20;
const capacityClasses = namesOf(capacityCodes);
const sources = namesOf(sourceCodes);
const outcomes = namesOf(outcomeCodes);

class BinaryRecords implements FrameRecords {
  readonly #payload: Buffer;
  readonly #view: DataView;
  /** Texts by their numbers. */
  readonly #texts: string[] = [];
  #at = 1;
  /** End of the last record that was read. */
  #readTo = 1;

  constructor(payload: Buffer) {
    this.#payload = payload;
    this.#view = new DataView(payload.buffer, payload.byteOffset, payload.byteLength);
  }

  get unreadBytes(): number {
    return this.#payload.length - this.#readTo;
  }

  next(): SpoolRecord | undefined {
    try {
      while (this.#at < this.#payload.length) {
        const record = this.#entry();
        this.#readTo = this.#at;
        if (record !== undefined) return record;
      }
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      this.#at = this.#payload.length;
    }
    return undefined;
  }

  /** Undefined for a text. Throws a `RangeError` for data that no version writes. */
  #entry(): SpoolRecord | undefined {
    const kind = this.#byte();
    switch (kind) {
      case entryKinds.text:
        this.#texts.push(this.#ownText());
        return undefined;
      case entryKinds.open:
        return { kind: "open", call: this.#call() };
      case entryKinds.close:
        return { kind: "close", record: this.#usage() };
      case entryKinds.checkpoint:
        return {
          kind: "checkpoint",
          id: this.#ownText(),
          delivered: { outputTokens: this.#number(), at: this.#number() },
        };
      default:
        throw new RangeError(`an entry of kind ${kind}`);
    }
  }

  // The fields are read in the order in which they were written.
  #call(): OpenedCall {
    const id = this.#ownText();
    const startedAt = this.#number();
    const inputTokens = this.#number();
    const reservedTokens = this.#known();
    return {
      id,
      startedAt,
      environment: this.#text(),
      accountId: this.#text(),
      applicationId: this.#text(),
      application: this.#text(),
      keyId: this.#text(),
      model: this.#text(),
      capacityClass: this.#name(capacityClasses),
      isStreamed: this.#flag() === true,
      inputTokens,
      reservedTokens,
    };
  }

  #usage(): UsageRecord {
    const call = this.#call();
    return {
      ...call,
      target: this.#knownText(),
      code: this.#knownText(),
      outputTokens: this.#number(),
      cachedInputTokens: this.#number(),
      cacheWriteTokens: this.#known(),
      status: this.#number(),
      attempts: this.#number(),
      firstEventMs: this.#known(),
      durationMs: this.#number(),
      usageSource: this.#name(sources),
      outcome: this.#name(outcomes),
      mayBeBilledTwice: this.#flag(),
      routing: this.#routing(),
    };
  }

  #byte(): number {
    const value = this.#view.getUint8(this.#at);
    this.#at += 1;
    return value;
  }

  #integer(): number {
    const value = this.#view.getUint32(this.#at, true);
    this.#at += 4;
    return value;
  }

  #number(): number {
    const value = this.#view.getFloat64(this.#at, true);
    this.#at += 8;
    return value;
  }

  #known(): number | undefined {
    const value = this.#number();
    return Number.isNaN(value) ? undefined : value;
  }

  #flag(): boolean | undefined {
    const value = this.#byte();
    return value === 0 ? undefined : value === 2;
  }

  #name<Name>(names: readonly Name[]): Name {
    const code = this.#byte();
    const name = names[code];
    if (name === undefined) throw new RangeError(`a name with number ${code}`);
    return name;
  }

  #text(): string {
    const text = this.#knownText();
    if (text === undefined) throw new RangeError("a text is missing");
    return text;
  }

  #knownText(): string | undefined {
    const number = this.#integer();
    if (number === 0) return undefined;
    const text = this.#texts[number - 1];
    if (text === undefined) throw new RangeError(`a text with number ${number}`);
    return text;
  }

  /** A text that belongs only to this record. */
  #ownText(): string {
    const start = this.#at + 4;
    const end = start + this.#integer();
    if (end > this.#payload.length) throw new RangeError("a text is too long");
    this.#at = end;
    return this.#payload.toString("utf8", start, end);
  }

  #routing(): CallRouting | undefined {
    const text = this.#ownText();
    return text === "" ? undefined : readRoutingText(text);
  }
}

function readRoutingText(text: string): CallRouting | undefined {
  try {
    return readRouting(JSON.parse(text));
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** The names by their numbers. */
function namesOf<Name extends string>(codes: { readonly [Each in Name]: number }): Name[] {
  const names: Name[] = [];
  for (const name in codes) names[codes[name]] = name;
  return names;
}
