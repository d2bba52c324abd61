import { GatewayError } from "../../domain/errors/gateway-error.ts";
import { type Model, modelNamed } from "../../domain/model.ts";
import { jsonReply, type Reply } from "../../edge/replies/error-reply.ts";
import type { KeyCall } from "../../edge/dispatch/route.ts";
import { mayUseModel } from "../../domain/keys/key.ts";

/** `GET /v1/models`: the models of the environment that the key may use. */
export function listModels(call: KeyCall): Reply {
  const data = usableModels(call).map(([name, model]) => modelBody(name, model));
  return jsonReply({ object: "list", data });
}

/** `GET /v1/models/{id}` */
export function retrieveModel(call: KeyCall): Reply {
  return jsonReply(modelBody(call.parameter, usableModel(call)));
}

/** The models that a key may use, by all names that it may ask for. */
export function usableModels({
  environment,
  caller,
}: KeyCall): readonly (readonly [string, Model])[] {
  const { models, otherNames } = environment;
  const names = [...models.keys(), ...(otherNames?.exact.keys() ?? [])];
  return names.flatMap((name) => {
    const model = modelNamed(environment, name);
    return model !== undefined && mayUseModel(caller.key, model.alias) ? [[name, model]] : [];
  });
}

/** The model that the path names. Throws 404, also for one of another kind than `kind`. */
export function usableModel(
  { environment, parameter, caller }: KeyCall,
  kind?: Model["kind"],
): Model {
  const model = modelNamed(environment, parameter);
  const isOfKind = kind === undefined || model?.kind === kind;
  if (model !== undefined && isOfKind && mayUseModel(caller.key, model.alias)) return model;
  throw new GatewayError("model_not_found", {
    message: `The model '${parameter.slice(0, 100)}' does not exist`,
    param: "model",
  });
}

/** OpenAI's fields, and what clients otherwise keep in tables of their own. */
function modelBody(name: string, model: Model): object {
  const { created, contextWindow, maxOutputTokens, capabilities = {} } = model;
  return {
    id: name,
    object: "model",
    created,
    owned_by: "sluice",
    context_window: contextWindow,
    max_output_tokens: maxOutputTokens,
    ...(Object.keys(capabilities).length > 0 && { capabilities }),
  };
}
