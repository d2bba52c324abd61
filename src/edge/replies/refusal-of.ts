import type { GatewayError } from "../../domain/errors/gateway-error.ts";
import type { Caller } from "../../domain/keys/key.ts";
import {
  refusalRules,
  type Refusal,
  type RefusalExplanation,
} from "../../domain/errors/refusal.ts";

export interface RefusedRequest {
  readonly id: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly error: GatewayError;
  /** Undefined when the request was refused before authentication. */
  readonly caller: Caller | undefined;
  /** Account of the principal of the control plane, if it has one. */
  readonly accountId?: string | undefined;
}

/** The record of a refusal; undefined for an error that is not the gateway's own decision. */
export function refusalOf(request: RefusedRequest): Refusal | undefined {
  const { id, at, error, caller, accountId } = request;
  const { status, code } = error;
  const explanation = error.explanation ?? explainByCode(error);
  if (explanation === undefined) return undefined;
  if (caller === undefined) {
    const account = accountId === undefined ? {} : { accountId };
    return { id, at, status, code, explanation: { ...account, ...explanation } };
  }
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

const decidedHere: ReadonlySet<number> = new Set([401, 403, 429, 503]);

/** Refusals of the control plane explain themselves; their code is the name of the rule. */
function explainByCode({ status, code, message }: GatewayError): RefusalExplanation | undefined {
  const rule = decidedHere.has(status) ? refusalRules.find((one) => one === code) : undefined;
  return rule && { rule, summary: message };
}
