import { GatewayError } from "../domain/gateway-error.ts";
import type { Key } from "../domain/key.ts";
import type { Model, ModelKind } from "../domain/model.ts";
import type { Call } from "./call.ts";

/** A model that the caller's environment has and that the endpoint can serve. */
export interface ResolvedModel {
  readonly model: Model;
}

/** Throws 400 `invalid_model`; for a model that the key may not use, as for one that is not there. */
export function resolveModel(
  { environment, caller }: Pick<Call, "environment" | "caller">,
  alias: string,
  kind: ModelKind,
): ResolvedModel {
  const model = environment.models.get(alias);
  if (model === undefined || !mayUseModel(caller.key, alias)) {
    throw invalidModel(`The model \`${alias.slice(0, 100)}\` does not exist in this environment. `);
  }
  if (model.kind !== kind) {
    const endpoint = model.kind === "chat" ? "/v1/chat/completions" : "/v1/embeddings";
    throw invalidModel(`The model \`${alias}\` is not supported here; use ${endpoint} for it. `);
  }
  return { model };
}

export function mayUseModel({ allowedModels }: Key, alias: string): boolean {
  return allowedModels === undefined || allowedModels.includes(alias);
}

function invalidModel(message: string): GatewayError {
  return new GatewayError("invalid_model", {
    message: `${message}GET /v1/models lists the models you can use.`,
    param: "model",
  });
}
