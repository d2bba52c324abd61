import { GatewayError } from "../domain/errors/gateway-error.ts";
import type { Key } from "../domain/keys/key.ts";
import type { Model, ModelKind } from "../domain/model.ts";
import type { Call } from "./call.ts";

/** A model that the caller's environment has and that the endpoint can serve. */
export interface ResolvedModel {
  readonly model: Model;
}

/** Throws 400 `invalid_model`. What the operator bound a key to is no secret from its holder. */
export function resolveModel(
  { environment, caller }: Pick<Call, "environment" | "caller">,
  alias: string,
  kind: ModelKind,
): ResolvedModel {
  const model = environment.models.get(alias);
  if (model === undefined) {
    throw invalidModel(
      `The model \`${alias.slice(0, 100)}\` does not exist in this environment.`,
      "you",
    );
  }
  if (!mayUseModel(caller.key, alias)) {
    throw invalidModel(`This API key may not use the model \`${alias}\`.`, "it");
  }
  if (model.kind !== kind) {
    const endpoint = model.kind === "chat" ? "/v1/chat/completions" : "/v1/embeddings";
    throw invalidModel(
      `The model \`${alias}\` is not supported here; use ${endpoint} for it.`,
      "you",
    );
  }
  return { model };
}

export function mayUseModel({ allowedModels }: Key, alias: string): boolean {
  return allowedModels === undefined || allowedModels.includes(alias);
}

function invalidModel(what: string, who: "you" | "it"): GatewayError {
  return new GatewayError("invalid_model", {
    message: `${what} GET /v1/models lists the models ${who} can use.`,
    param: "model",
  });
}
