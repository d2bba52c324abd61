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
  /** Undefined when the request was refused before anybody was recognised. */
  readonly caller: Caller | undefined;
  /** Account of who is signed in to the control plane, if it is of one. */
  readonly accountId?: string | undefined;
}

/** What is kept of a refusal; undefined for an error that the gateway did not decide on its own. */
export function refusalOf(request: RefusedRequest): Refusal | undefined {
  const { id, at, error, caller, accountId } = request;
  const { status, code } = error;
  const explanation = error.explanation ?? explainByCode(error);
  if (explanation === undefined) return undefined;
  if (caller === undefined) {
    const whose = accountId === undefined ? {} : { accountId };
    return { id, at, status, code, explanation: { ...whose, ...explanation } };
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

/** The control plane's refusals say all there is to say; each has the name of its rule. */
function explainByCode({ status, code, message }: GatewayError): RefusalExplanation | undefined {
  const rule = decidedHere.has(status) ? refusalRules.find((one) => one === code) : undefined;
  return rule && { rule, summary: message };
}
