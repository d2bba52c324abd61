import type { GatewayError } from "../domain/gateway-error.ts";
import type { Caller } from "../domain/key.ts";
import type { Refusal } from "../domain/refusal.ts";

export interface RefusedRequest {
  readonly id: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly error: GatewayError;
  /** Undefined when the request was refused before anybody was recognised. */
  readonly caller: Caller | undefined;
}

/** What is kept of a refusal; undefined for an error that the gateway did not decide on its own. */
export function refusalOf({ id, at, error, caller }: RefusedRequest): Refusal | undefined {
  const { explanation, status, code } = error;
  if (explanation === undefined) return undefined;
  if (caller === undefined) return { id, at, status, code, explanation };
  const { key, publicId } = caller;
  const known = {
    keyId: key.id,
    publicId,
    accountId: key.accountId,
    application: key.application,
    environment: key.environment,
  };
  return { id, at, status, code, explanation: { ...known, ...explanation } };
}
