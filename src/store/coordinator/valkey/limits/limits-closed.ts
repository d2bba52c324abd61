import { GatewayError } from "../../../../domain/errors/gateway-error.ts";

/** What callers get whose plan admits nothing while the shared limits cannot be decided. */
export function limitsClosed(cause: unknown): GatewayError {
  return new GatewayError("model_unavailable", {
    message:
      "The limits of your API key cannot be checked, because the store that counts them does not " +
      "answer. Please retry your request.",
    headers: { "retry-after": "1" },
    cause,
    explanation: {
      rule: "limits_unavailable",
      summary:
        "The limits of the key could not be decided: the server of limits.store does not answer, " +
        "and the plan has when_limits_unavailable: closed. `sluice status` shows its state.",
    },
  });
}
