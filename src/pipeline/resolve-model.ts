import { GatewayError } from "../domain/gateway-error.ts";
import type { Environment, Model, ModelKind } from "../domain/model.ts";

/** A model that the caller's environment has and that the endpoint can serve. */
export interface ResolvedModel {
  readonly model: Model;
}

/** Throws 400 `invalid_model`. */
export function resolveModel(
  environment: Environment,
  alias: string,
  kind: ModelKind,
): ResolvedModel {
  const model = environment.models.get(alias);
  if (model === undefined) {
    throw invalidModel(`The model \`${alias.slice(0, 100)}\` does not exist in this environment. `);
  }
  if (model.kind !== kind) {
    const endpoint = model.kind === "chat" ? "/v1/chat/completions" : "/v1/embeddings";
    throw invalidModel(`The model \`${alias}\` is not supported here; use ${endpoint} for it. `);
  }
  return { model };
}

function invalidModel(message: string): GatewayError {
  return new GatewayError("invalid_model", {
    message: `${message}GET /v1/models lists the models you can use.`,
    param: "model",
  });
}
