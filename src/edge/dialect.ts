import type { GatewayError } from "../domain/errors/gateway-error.ts";
import type { CredentialForm } from "../domain/keys/credential-form.ts";
import type { ModelEndpoints } from "../snapshot/call.ts";

/**
 * The wire format of an API surface for what the gateway itself reads and writes: the API key and
 * errors. Each route for calls names one.
 */
export interface Dialect {
  readonly credential: CredentialForm;
  readonly endpoints: ModelEndpoints;
  /** Writes an error as JSON. `error.toBody()` has the texts that callers may see. */
  readonly error: (error: GatewayError) => { readonly status: number; readonly body: string };
  /** The last frame of a stream that fails after its 200 was sent. */
  readonly errorFrame: (error: GatewayError) => string;
}
