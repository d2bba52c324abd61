import { GatewayError } from "../../../domain/errors/gateway-error.ts";
import { LinkLost } from "../../link/link-errors.ts";

/** What the caller sees when control has not decided about its call; other errors are unchanged. */
export function notDecided(error: unknown): unknown {
  if (!(error instanceof LinkLost)) return error;
  return new GatewayError("model_unavailable", {
    message: "The limits of your API key cannot be checked right now. Please retry your request.",
    headers: { "retry-after": "1" },
    cause: error,
    explanation: {
      rule: "limits_unavailable",
      summary:
        "The limits of the call could not be decided, because control does not answer. " +
        "`sluice status` shows whether it runs.",
    },
  });
}

export function throwNotDecided(error: unknown): never {
  throw notDecided(error);
}
