import type { IdempotencySettings } from "../../domain/idempotency-settings.ts";
import type { ConfigFile } from "../schema/schema.ts";

export function buildIdempotency(idempotency: ConfigFile["idempotency"]): IdempotencySettings {
  return {
    answerLimitBytes: idempotency.answer_limit,
    memoryLimitBytes: idempotency.memory_limit,
    storageLimitBytes: idempotency.storage_limit,
    keepMs: idempotency.keep,
  };
}
