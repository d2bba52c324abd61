import type { GatewayError } from "./errors/gateway-error.ts";
import type { Refusal } from "./errors/refusal.ts";

/** What is known about a request of the API that did not become a call. */
export interface AccessFacts {
  /** Undefined when no key was accepted. */
  readonly keyId: string | undefined;
  readonly headers: Pick<Headers, "get">;
  /** Whether it is one of many requests with the same prepared refusal. */
  readonly isRepeat: boolean;
}

export interface AuditedRequest {
  readonly plan: string;
  readonly refusal: Refusal;
}

/** A finished request, for the log and the metrics. */
export interface HandledRequest {
  readonly id: string;
  readonly method: string;
  /** Path of the route, or `other`: a bounded set of values. */
  readonly route: string;
  readonly status: number;
  readonly durationMs: number;
  /** Present when the answer is an error. */
  readonly error: GatewayError | undefined;
  /** Present when the gateway itself refused, with the caller as far as it is known. */
  readonly refusal?: Refusal | undefined;
  /** The refusal that the request would have got if its plan were not in audit. */
  readonly audited?: AuditedRequest | undefined;
  /** Set for a prepared refusal that was sent again. */
  readonly repeatedOf?: "key" | "address" | undefined;
  /** Set for a request of the API that did not become a call. */
  readonly access?: AccessFacts | undefined;
}
