import { z } from "zod";
import { duration, size, wholeNumber } from "../../../settings/values.ts";
import { ledgerEventsSchema } from "./ledger-events.ts";

export const ledgerSchema = z
  .strictObject({
    batch_rows: wholeNumber({
      about: "Maximum usage records per database transaction.",
      min: 1,
      max: 10_000,
      initial: 500,
    }),
    flush_interval: duration({
      about: "Maximum time between two writes while records wait.",
      min: "10ms",
      max: "1m",
      initial: "1s",
    }),
    sync: z
      .enum(["none", "group"])
      .prefault("group")
      .describe(
        "Whether the spool is synced to disk: `group` every 20 ms (what a power cut can " +
          "lose), `none` leaves it to the system. A crash of the process loses nothing either " +
          "way.",
      ),
    spool_limit: size({
      about:
        "Maximum size of a process's spool. When it is full, its calls are refused; the log " +
        "warns from 80 % on.",
      min: "64KiB",
      max: "1024GiB",
      initial: "1GiB",
    }),
    segment_size: size({
      about: "Size of one file of the spool.",
      min: "16KiB",
      max: "1GiB",
      initial: "8MiB",
    }),
    events: ledgerEventsSchema,
  })
  .refine((ledger) => ledger.spool_limit >= 4 * ledger.segment_size, {
    path: ["spool_limit"],
    error: "must be at least four times ledger.segment_size",
  })
  .prefault({})
  .describe("The record of usage.")
  .transform((ledger) => ({
    batchRows: ledger.batch_rows,
    flushIntervalMs: ledger.flush_interval,
    sync: ledger.sync,
    spoolLimitBytes: ledger.spool_limit,
    segmentBytes: ledger.segment_size,
    events: ledger.events,
  }));
