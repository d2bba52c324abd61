import { GatewayError } from "../domain/errors/gateway-error.ts";
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
    throw invalidModel(what, "you", endpoints);
  }
  if (!mayUseModel(call.caller.key, alias)) {
    throw invalidModel(`This API key may not use the model \`${alias}\`.`, "it", endpoints);
  }
  if (model.kind !== kind) {
    const where = endpoints[model.kind];
    const what = `The model \`${alias}\` is not supported here; use ${where} for it.`;
    throw invalidModel(what, "you", endpoints);
  }
  return model;
}

export function mayUseModel({ allowedModels }: Key, alias: string): boolean {
  return allowedModels === undefined || allowedModels.includes(alias);
}

function invalidModel(what: string, who: "you" | "it", { list }: ModelEndpoints): GatewayError {
  return new GatewayError("invalid_model", {
    message: `${what} GET ${list} lists the models ${who} can use.`,
    param: "model",
  });
}
