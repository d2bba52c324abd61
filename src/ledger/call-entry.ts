import type { OpenedCall, UsageRecord } from "../domain/usage.ts";
import type { Segment } from "./segment.ts";
import { writeCheckpoint, writeClose, writeOpen, type Delivered } from "./spool-record.ts";

/** One call that the database does not have yet, as memory knows it. */
export class CallEntry {
  /** Undefined for a call that was refused before it could run. */
  readonly call: OpenedCall | undefined;
  delivered: Delivered | undefined;
  /** Set when the call has ended. */
  record: UsageRecord | undefined;
  /** Where the spool has what is above; undefined while it could not be written. */
  segment: Segment | undefined;

  constructor(call?: OpenedCall) {
    this.call = call;
  }

  /** All that a replay has to know of the call. */
  toRecords(): readonly string[] {
    const { call, delivered, record } = this;
    if (record !== undefined) return [writeClose(record)];
    if (call === undefined) return [];
    if (delivered === undefined) return [writeOpen(call)];
    return [writeOpen(call), writeCheckpoint(call.id, delivered)];
  }
}
