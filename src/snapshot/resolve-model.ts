import { GatewayError } from "../domain/errors/gateway-error.ts";
import type { RefusalExplanation } from "../domain/errors/refusal.ts";
import type { Key } from "../domain/keys/key.ts";
import type { Model, ModelKind } from "../domain/model.ts";
import type { Call, ModelEndpoints } from "./call.ts";

/**
 * Finds a model that the caller's environment has and that the endpoint can serve. Throws 400
 * `invalid_model`. The message may name the models that a key is limited to: its holder may know
 * them.
 */
export function resolveModel(
  call: Pick<Call, "environment" | "caller" | "dialect">,
  alias: string,
  kind: ModelKind,
): Model {
  const { endpoints } = call.dialect;
  const model = call.environment.models.get(alias);
  if (model === undefined) {
    const what = `The model \`${alias.slice(0, 100)}\` does not exist in this environment.`;
    const summary = `The request names a model that environment ${call.environment.name} lacks.`;
    throw invalidModel(what, "you", { endpoints, explanation: { rule: "model_unknown", summary } });
  }
  if (!mayUseModel(call.caller.key, alias)) {
    const what = `This API key may not use the model \`${alias}\`.`;
    const summary = `The key may not use model ${alias}; allowed_models of the key lists those it may.`;
    const explanation = { rule: "model_not_allowed", summary, model: alias } as const;
    throw invalidModel(what, "it", { endpoints, explanation });
  }
  if (model.kind !== kind) {
    const where = endpoints[model.kind];
    const what = `The model \`${alias}\` is not supported here; use ${where} for it.`;
    const summary = `Model ${alias} is of kind ${model.kind}, which this endpoint does not serve.`;
    const explanation = { rule: "model_kind", summary, model: alias } as const;
    throw invalidModel(what, "you", { endpoints, explanation });
  }
  return model;
}

export function mayUseModel({ allowedModels }: Key, alias: string): boolean {
  return allowedModels === undefined || allowedModels.includes(alias);
}

interface ModelFault {
  readonly endpoints: ModelEndpoints;
  readonly explanation: RefusalExplanation;
}

function invalidModel(what: string, who: "you" | "it", fault: ModelFault): GatewayError {
  const { endpoints, explanation } = fault;
  return new GatewayError("invalid_model", {
    message: `${what} GET ${endpoints.list} lists the models ${who} can use.`,
    param: "model",
    explanation,
  });
}
