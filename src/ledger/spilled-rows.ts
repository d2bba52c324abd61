import type { UsageRecord } from "../domain/usage/usage.ts";
import { recordsAtOnce, type ReadBack } from "./read-back.ts";
import { RecordReader } from "./spool/record-reader.ts";
import type { Segment } from "./spool/segment.ts";

export interface SpilledRowsEvents {
  readonly onDamage: (skippedBytes: number) => void;
  /** `rows`: how many had left memory. */
  readonly onDone: (rows: number) => void;
}

/** Reads ended calls that did not fit in memory back from a file of this process. */
export class SpilledRows implements ReadBack {
  readonly #segment: Segment;
  readonly #reader: RecordReader;
  readonly #on: SpilledRowsEvents;

  constructor(segment: Segment, on: SpilledRowsEvents) {
    this.#segment = segment;
    this.#reader = new RecordReader(segment.path);
    this.#on = on;
  }

  next(limit: number): readonly UsageRecord[] | undefined {
    const rows: UsageRecord[] = [];
    for (let records = 0; records < recordsAtOnce && rows.length < limit; records += 1) {
      const record = this.#reader.next();
      if (record === undefined) return rows.length > 0 ? rows : undefined;
      if (record.kind === "close") rows.push(record.record);
    }
    return rows;
  }

  finish(): void {
    const { skippedBytes } = this.#reader;
    const rows = this.#segment.spilledRows;
    this.#reader.close();
    this.#segment.skippedBytes = skippedBytes;
    this.#segment.spilledRows = 0;
    if (skippedBytes > 0) this.#on.onDamage(skippedBytes);
    this.#on.onDone(rows);
  }

  abandon(): void {
    this.#reader.close();
  }
}
