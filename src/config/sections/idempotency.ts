import { z } from "zod";
import type { IdempotencySettings } from "../../domain/settings.ts";
import { duration, size, wholeNumber } from "../../settings/values.ts";

/** An answer is stored with its headers and a seal, so the store must hold more than one answer. */
const leastAnswersStored = 2;

export const idempotencySchema = z
  .strictObject({
    answer_limit: size("1MiB", ["1KiB", "64MiB"]).describe(
      "Largest stored answer; a larger one cannot be repeated.",
    ),
    memory_limit: size("256MiB", ["1MiB", "64GiB"]).describe(
      "Memory for answers before they are stored.",
    ),
    storage_limit: size("256MiB", ["1MiB", "1024GiB"]).describe(
      "Stored answers in the database; then the account with the most loses its oldest.",
    ),
    waiting_limit: wholeNumber(256, [2, 100_000]).describe(
      "Calls of a process that wait for the answer of an equal one; further ones get 409.",
    ),
    keep: duration("24h", ["1m", "7d"]).describe("How long answers are stored."),
  })
  .refine(({ answer_limit, storage_limit }) => storage_limit >= leastAnswersStored * answer_limit, {
    path: ["storage_limit"],
    error: "must be at least twice idempotency.answer_limit",
  })
  .prefault({})
  .describe("Stored answers, encrypted, for `Idempotency-Key` on plans with `idempotency`.")
  .transform((idempotency): IdempotencySettings => ({
    answerLimitBytes: idempotency.answer_limit,
    memoryLimitBytes: idempotency.memory_limit,
    storageLimitBytes: idempotency.storage_limit,
    keepMs: idempotency.keep,
    waitingLimit: idempotency.waiting_limit,
  }));
