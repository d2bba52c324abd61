import type { GatewayError } from "../../domain/errors/gateway-error.ts";
import type { Refusal } from "../../domain/errors/refusal.ts";
import type { UsageRecord } from "../../domain/usage/usage.ts";

/**
 * What is kept of a stream that the gateway itself has ended, such as when its key was revoked: its
 * answer had begun, so no refused request tells of it. Undefined for what the upstream did.
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
