import type { GatewayError } from "../../domain/errors/gateway-error.ts";
import type { Refusal } from "../../domain/errors/refusal.ts";

/** What the log and the metrics learn of a request. */
export interface HandledRequest {
  readonly id: string;
  readonly method: string;
  /** Path of the route's row, or `other`: few values, whatever callers send. */
  readonly route: string;
  readonly status: number;
  readonly durationMs: number;
  /** Present when the answer is an error. */
  readonly error: GatewayError | undefined;
  /** Present when the gateway itself refused and says why, with the caller as far as it is known. */
  readonly refusal: Refusal | undefined;
  /** Whose refusals come so fast that they are made once and sent again as they are. */
  readonly repeatedOf: "key" | "address" | undefined;
}
