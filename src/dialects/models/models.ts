import { GatewayError } from "../../domain/errors/gateway-error.ts";
import type { Model } from "../../domain/model.ts";
import { jsonReply, type Reply } from "../../edge/replies/error-reply.ts";
import type { KeyCall } from "../../edge/dispatch/route.ts";
import { mayUseModel } from "../../snapshot/call.ts";

/** `GET /v1/models`: the models of the environment that the key may use. */
export function listModels({ environment, caller }: KeyCall): Reply {
  const models = [...environment.models.values()];
  const usable = models.filter(({ alias }) => mayUseModel(caller.key, alias));
  return jsonReply({ object: "list", data: usable.map(modelBody) });
}

/** `GET /v1/models/{id}` */
export function retrieveModel(call: KeyCall): Reply {
  const model = call.environment.models.get(call.parameter);
  if (model !== undefined && mayUseModel(call.caller.key, model.alias)) {
    return jsonReply(modelBody(model));
  }
  throw new GatewayError("model_not_found", {
    message: `The model '${call.parameter.slice(0, 100)}' does not exist`,
    param: "model",
  });
}

function modelBody(model: Model): object {
  return { id: model.alias, object: "model", created: model.created, owned_by: "sluice" };
}
