import { z } from "zod";
import type { IdempotencySettings } from "../../domain/settings.ts";
import { duration, size, wholeNumber } from "../../settings/values.ts";

/** An answer is stored with its headers and a seal, so the store must hold more than one answer. */
const leastAnswersStored = 2;

export const idempotencySchema = z
  .strictObject({
    answer_limit: size({
      about: "Largest stored answer. A call with a larger one cannot be repeated.",
      min: "1KiB",
      max: "64MiB",
      initial: "1MiB",
    }),
    memory_limit: size({
      about:
        "Memory for answers that are to be stored: streams in progress, and answers that wait " +
        "for the database. An answer without room counts as too large.",
      min: "1MiB",
      max: "64GiB",
      initial: "256MiB",
    }),
    storage_limit: size({
      about:
        "Total size of stored answers in the database. When full, the account with the most " +
        "loses its oldest.",
      min: "1MiB",
      max: "1024GiB",
      initial: "256MiB",
    }),
    waiting_limit: wholeNumber({
      about:
        "Most calls of a process that wait for the answer of an equal one; those of an account " +
        "take at most half. Further ones get 409 at once.",
      min: 2,
      max: 100_000,
      initial: 256,
    }),
    keep: duration({
      about: "How long answers are stored.",
      min: "1m",
      max: "7d",
      initial: "24h",
    }),
  })
  .refine(({ answer_limit, storage_limit }) => storage_limit >= leastAnswersStored * answer_limit, {
    path: ["storage_limit"],
    error: "must be at least twice idempotency.answer_limit",
  })
  .prefault({})
  .describe(
    "Stored answers for `Idempotency-Key`, on plans with `idempotency`. They are encrypted.",
  )
  .transform((idempotency): IdempotencySettings => ({
    answerLimitBytes: idempotency.answer_limit,
    memoryLimitBytes: idempotency.memory_limit,
    storageLimitBytes: idempotency.storage_limit,
    keepMs: idempotency.keep,
    waitingLimit: idempotency.waiting_limit,
  }));
