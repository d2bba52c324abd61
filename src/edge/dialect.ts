import type { GatewayError } from "../domain/errors/gateway-error.ts";
import type { CredentialForm } from "../domain/keys/credential-form.ts";
import type { ModelEndpoints } from "../snapshot/call.ts";

/**
 * How an API surface speaks where the gateway speaks for itself: what its callers send a key in, and
 * what they read an error from. Each route for calls names one; it decides nothing.
 */
export interface Dialect {
  readonly credential: CredentialForm;
  readonly endpoints: ModelEndpoints;
  /** An answer that is an error, in JSON. `toBody` of the error has the texts that may be shown. */
  readonly error: (error: GatewayError) => { readonly status: number; readonly body: string };
  /** What ends a stream that fails after its 200 was sent; nothing follows it. */
  readonly errorFrame: (error: GatewayError) => string;
}
