import { GatewayError } from "../domain/errors/gateway-error.ts";
import type { Model } from "../domain/model.ts";

/** Gives a request whose limits nobody could decide its rule, for operators. */
export function throwUndecided(error: unknown, model?: Pick<Model, "alias">): never {
  const isKnown = error instanceof GatewayError && error.row.code === "model_unavailable";
  if (!isKnown || error.explanation !== undefined) throw error;
  throw new GatewayError("model_unavailable", {
    message: error.message,
    headers: error.headers,
    cause: error.cause,
    explanation: {
      rule: "limits_unavailable",
      summary:
        "The limits of the key could not be decided: the server of limits.store does not answer " +
        "and the plan has when_limits_unavailable: closed, or control does not answer. " +
        "`sluice status` shows which.",
      ...(model && { model: model.alias }),
    },
  });
}
