import { z } from "zod";
import type { IdempotencySettings } from "../../domain/idempotency-settings.ts";
import { duration, size } from "../../settings/values.ts";

/** An answer is stored with its headers and a seal, so the store must hold more than one answer. */
const leastAnswersStored = 2;

export const idempotencySchema = z
  .strictObject({
    answer_limit: size({
      about:
        "Largest answer that is kept. A call whose answer is larger cannot be joined or repeated.",
      min: "1KiB",
      max: "64MiB",
      initial: "1MiB",
    }),
    memory_limit: size({
      about:
        "Streamed answers under way that are held in memory for callers who join, all together. " +
        "An answer that finds no room is treated as one that is too large, and callers who read it " +
        "more slowly than others are left behind.",
      min: "1MiB",
      max: "64GiB",
      initial: "256MiB",
    }),
    storage_limit: size({
      about:
        "Answers kept in the database, all together. Of the account that has most, the oldest go first.",
      min: "1MiB",
      max: "1024GiB",
      initial: "256MiB",
    }),
    keep: duration({
      about: "How long an answer is kept.",
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
    "Answers to calls with an `Idempotency-Key`, on plans that have `idempotency`. They are stored " +
      "encrypted.",
  )
  .transform((idempotency): IdempotencySettings => ({
    answerLimitBytes: idempotency.answer_limit,
    memoryLimitBytes: idempotency.memory_limit,
    storageLimitBytes: idempotency.storage_limit,
    keepMs: idempotency.keep,
  }));
