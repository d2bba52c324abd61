import type { GatewayError } from "../../domain/errors/gateway-error.ts";
import { UpstreamFailure } from "../../domain/errors/upstream-failure.ts";
import { maskApiKeys } from "../../domain/keys/api-key.ts";
import type { Caller } from "../../domain/keys/key.ts";
import { callDialects } from "../../domain/usage/usage.ts";
import {
  type Refusal,
  type RefusalExplanation,
  type RefusalRule,
  refusalRules,
} from "../../domain/errors/refusal.ts";

export interface RefusedRequest extends Pick<Refusal, "id" | "at" | "callerStatus"> {
  readonly error: GatewayError;
  /** Path of the route. */
  readonly route?: string;
  /** Undefined when the request was refused before authentication. */
  readonly caller: Caller | undefined;
  /** Account of the principal of the control plane, if it has one. */
  readonly accountId?: string | undefined;
}

/** Undefined if nobody would look for it: its caller left, or had no key and the error says all. */
export function refusalOf(request: RefusedRequest): Refusal | undefined {
  const { error, caller, accountId, route, id, at, callerStatus } = request;
  const dialect = callDialects.find((name) => route?.startsWith(`/v1/${name}`));
  const told = { id, at, status: error.status, callerStatus, code: error.code, dialect };
  if (caller === undefined) {
    const explanation = error.explanation ?? explainByCode(error);
    const account = accountId === undefined ? {} : { accountId };
    return explanation && { ...told, explanation: { ...account, ...explanation } };
  }
  const explanation = error.explanation ?? explainByRow(error);
  if (explanation === undefined) return undefined;
  const { key, publicId } = caller;
  const param = error.param === null ? undefined : shownParam(error.param);
  const known = {
    keyId: key.id,
    publicId,
    accountId: key.accountId,
    application: key.application,
    environment: key.environment,
    ...(key.limits === undefined && { plan: key.plan }),
    ...(param !== undefined && { param }),
  };
  return { ...told, explanation: { ...known, ...explanation } };
}

const decidedHere: ReadonlySet<number> = new Set([401, 403, 429, 503]);

/** Refusals of the control plane explain themselves; their code is the name of the rule. */
function explainByCode({ status, code, message }: GatewayError): RefusalExplanation | undefined {
  const rule = decidedHere.has(status) ? refusalRules.find((one) => one === code) : undefined;
  return rule && { rule, summary: message };
}

/** A message that may quote the request is not kept. */
function explainByRow({
  rowName,
  keptMessage,
  status,
  cause,
}: GatewayError): RefusalExplanation | undefined {
  switch (rowName) {
    case "caller_left":
      return undefined;
    case "upstream_rejected":
    case "content_refused": {
      if (isOwn(cause)) {
        const summary = "The upstream of the model cannot take the request; its caller knows why.";
        return { rule: "invalid_request", summary };
      }
      const kept = "Its message went to the caller and is not kept, as it may quote the request.";
      const what = rowName === "content_refused" ? "content" : "request";
      return { rule: "upstream_rejected", summary: `The upstream refused the ${what}. ${kept}` };
    }
    case "internal_error":
      return { rule: "internal_error", summary: "Unexpected failure; the log has its cause." };
    default: {
      const rule = rulesOfRows[rowName] ?? (status < 500 ? "invalid_request" : undefined);
      return rule && { rule, summary: keptMessage };
    }
  }
}

/** A failure that the adapter found before anything was sent. */
function isOwn(cause: unknown): boolean {
  if (!(cause instanceof UpstreamFailure)) return false;
  const { status, code } = cause.details;
  return status === undefined && code === undefined;
}

const rulesOfRows: Partial<Record<GatewayError["rowName"], RefusalRule>> = {
  model_not_found: "model_unknown",
  context_length_exceeded: "context_window",
  answer_mismatch: "answer_mismatch",
  idempotency_key_conflict: "idempotency_key",
  idempotency_key_in_use: "idempotency_key",
  answer_not_kept: "idempotency_key",
  deadline_exceeded: "deadline",
};

const longestParam = 200;

/** Names of metadata are the caller's own, and a provider may write anything. */
function shownParam(param: string): string | undefined {
  const path = param.startsWith("metadata.") ? "metadata" : param;
  const isPath = path.length <= longestParam && /^[\w$.[\]-]+$/.test(path);
  return isPath ? maskApiKeys(path) : undefined;
}
