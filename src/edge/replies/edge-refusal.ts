import type { CredentialForm } from "../../domain/keys/credential-form.ts";
import { GatewayError } from "../../domain/errors/gateway-error.ts";
import { retryHeaders } from "../../domain/limits/headers.ts";

export function draining(): GatewayError {
  return new GatewayError("model_unavailable", {
    message: "This instance of the gateway is shutting down. Please retry your request.",
    headers: { ...retryHeaders(1_000), connection: "close" },
    explanation: {
      rule: "draining",
      summary: "The process is shutting down and finishes only open requests.",
    },
  });
}

export function unknownHost(host: string): GatewayError {
  return new GatewayError("unknown_url", {
    message: `No environment answers at host '${host}'. Please check the host of your base URL.`,
  });
}

/** Names no details of the key: one prepared answer serves all wrong keys of an address. */
export function repeatedlyWrongKey({ header }: CredentialForm): GatewayError {
  return new GatewayError("invalid_api_key", {
    message:
      "Incorrect API key provided. Your network address sends many requests with wrong keys. Send " +
      `the key of your application for this environment in the ${header}.`,
  });
}

/** Whether the error only results from the caller's disconnect. */
export function hasLeft({ signal }: Request, thrown: unknown): boolean {
  if (!signal.aborted || !(thrown instanceof Error)) return false;
  return thrown === signal.reason || thrown.name === "AbortError";
}
