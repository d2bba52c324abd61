import { GatewayError } from "../domain/gateway-error.ts";
import type { Model } from "../domain/model.ts";
import { jsonReply, type Reply } from "../http/reply.ts";
import type { KeyCall } from "../http/route.ts";

/** `GET /v1/models` */
export function listModels(call: KeyCall): Reply {
  const models = [...call.environment.models.values()];
  return jsonReply({ object: "list", data: models.map(modelBody) });
}

/** `GET /v1/models/{id}` */
export function retrieveModel(call: KeyCall): Reply {
  const model = call.environment.models.get(call.parameter);
  if (model !== undefined) return jsonReply(modelBody(model));
  throw new GatewayError("model_not_found", {
    message: `The model '${call.parameter.slice(0, 100)}' does not exist`,
    param: "model",
  });
}

function modelBody(model: Model): object {
  return { id: model.alias, object: "model", created: model.created, owned_by: "sluice" };
}
