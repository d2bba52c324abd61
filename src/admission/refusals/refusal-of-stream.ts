import type { GatewayError } from "../../domain/errors/gateway-error.ts";
import type { Refusal } from "../../domain/errors/refusal.ts";
import type { UsageRecord } from "../../domain/usage/usage.ts";

/**
 * The refusal that is kept for a stream that the gateway itself has ended, for example because its
 * key was revoked. Undefined if the answer had not begun, or if the upstream ended it.
 */
export function refusalOfStream(
  record: UsageRecord,
  { status, code, explanation }: GatewayError,
  at: number,
): Refusal | undefined {
  const hasBegun = record.isStreamed && record.attempts > 0;
  if (!hasBegun || explanation === undefined || explanation.rule === "upstream") return undefined;
  const { id, keyId, accountId, application, environment, model } = record;
  const known = { keyId, accountId, application, environment, model };
  return { id, at, status, code, explanation: { ...known, ...explanation } };
}
