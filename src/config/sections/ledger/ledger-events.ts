import { z } from "zod";
import { Secret } from "../../../domain/keys/secret.ts";
import type { LedgerEventSettings } from "../../../domain/settings.ts";
import { duration, httpUrl, size, text, wholeNumber } from "../../../settings/values.ts";

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
    batch: wholeNumber({
      about: "Maximum events in one request.",
      min: 1,
      max: 1000,
      initial: 100,
    }),
    timeout: duration({
      about: "Longest time for one request.",
      min: "100ms",
      max: "5m",
      initial: "15s",
    }),
    longest_pause: duration({
      about: "Longest pause between two attempts while requests fail. Pauses begin at a second.",
      min: "1s",
      max: "1h",
      initial: "1m",
    }),
  })
  .optional()
  .describe("Posts events as signed JSON. They wait in the database until the receiver has them.");

const fileSchema = z
  .strictObject({
    path: text("Path of the file, one JSON object per line; its folder must exist."),
    rotate_size: size({
      about: "At this size, the file is renamed with the time, and a new one is begun.",
      min: "64KiB",
      max: "64GiB",
      initial: "100MiB",
    }),
  })
  .optional()
  .describe("Appends events to a file.");

export const ledgerEventsSchema = z
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
