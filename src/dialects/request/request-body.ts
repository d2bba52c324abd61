import { GatewayError } from "../../domain/errors/gateway-error.ts";
import { isObject, type JsonObject } from "../../domain/json-object.ts";
import * as messages from "./messages.ts";

/** Refuses a body that is not an object with the error for invalid JSON, as OpenAI does. */
export function requireObject(body: unknown): JsonObject {
  if (isObject(body)) return body;
  throw new GatewayError("invalid_json", { message: messages.notJson() });
}

export function requireModel(body: JsonObject): string {
  const model = body["model"];
  if (model === undefined || model === null || model === "") {
    throw new GatewayError("invalid_body", { message: messages.missingModel() });
  }
  if (typeof model === "string") return model;
  throw wrongModel(model);
}

function wrongModel(model: unknown): GatewayError {
  return new GatewayError("invalid_type", {
    message: messages.wrongType("model", "a string", model),
    param: "model",
  });
}
