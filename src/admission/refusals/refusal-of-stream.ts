import type { GatewayError } from "../../domain/errors/gateway-error.ts";
import type { Refusal } from "../../domain/errors/refusal.ts";
import type { UsageRecord } from "../../domain/usage/usage.ts";

/**
 * The refusal that is kept for a stream that the gateway itself has ended, for example because its
 * key was revoked, or while it waited in a queue after its headers were sent early. If it fails
 * before, the same refusal is kept again when it is answered, under the same id.
 */
export function refusalOfStream(
  record: UsageRecord,
  { status, code, explanation }: GatewayError,
  at: number,
): Refusal | undefined {
  const isOwn = explanation !== undefined && explanation.rule !== "upstream";
  if (!record.isStreamed || !isOwn) return undefined;
  const { id, keyId, accountId, application, environment, model } = record;
  const known = { keyId, accountId, application, environment, model };
  return { id, at, status, code, explanation: { ...known, ...explanation } };
}
