import { z } from "zod";
import { Secret } from "../../domain/keys/secret.ts";
import type { LedgerEventSettings } from "../../domain/settings.ts";
import { duration, httpUrl, size, text, wholeNumber } from "../../settings/values.ts";

const webhookSchema = z
  .strictObject({
    url: httpUrl("Address to which events are posted."),
    secret: z
      .string()
      .regex(
        /^whsec_(?:[A-Za-z0-9+/]{4}){8,}(?:[A-Za-z0-9+/]{2,3}={0,2})?$/,
        "must be whsec_ and at least 24 random bytes in base64",
      )
      .transform((value) => new Secret(value))
      .meta({
        title: "secret",
        description: "Key of the signature: `whsec_` and at least 24 random bytes in base64.",
      }),
    batch: wholeNumber(100, [1, 1000]).describe("Maximum events in one request."),
    timeout: duration("15s", ["100ms", "5m"]).describe("Longest time for one request."),
    longest_pause: duration("1m", ["1s", "1h"]).describe(
      "Longest pause between failing attempts; the first is a second.",
    ),
  })
  .optional()
  .describe("Posts events as signed JSON; they wait in the database until the receiver has them.");

const fileSchema = z
  .strictObject({
    path: text("Path of the file, one JSON object per line; its folder must exist."),
    rotate_size: size("100MiB", ["64KiB", "64GiB"]).describe(
      "At this size the file is renamed with the time.",
    ),
  })
  .optional()
  .describe("Appends events to a file.");

const ledgerEventsSchema = z
  .strictObject({ webhook: webhookSchema, file: fileSchema })
  .prefault({})
  .describe("Events for billing systems: one for each row of the ledger.")
  .transform(({ webhook, file }): LedgerEventSettings => ({
    webhook: webhook && {
      url: webhook.url,
      secret: webhook.secret,
      batchEvents: webhook.batch,
      timeoutMs: webhook.timeout,
      longestPauseMs: webhook.longest_pause,
    },
    file: file && { path: file.path, rotateBytes: file.rotate_size },
  }));

export const ledgerSchema = z
  .strictObject({
    batch_rows: wholeNumber(2000, [1, 10_000]).describe(
      "Maximum usage records per database transaction.",
    ),
    flush_interval: duration("1s", ["10ms", "1m"]).describe(
      "Maximum time between two writes while records wait.",
    ),
    sync: z
      .enum(["none", "group"])
      .prefault("group")
      .describe(
        "`group` syncs the spool to disk every 20 ms, the most that a power cut loses; `none` " +
          "leaves it to the system.",
      ),
    spool_limit: size("1GiB", ["64KiB", "1024GiB"]).describe(
      "Maximum spool of a process; when it is full, calls are refused.",
    ),
    segment_size: size("8MiB", ["16KiB", "1GiB"]).describe("Size of one file of the spool."),
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
