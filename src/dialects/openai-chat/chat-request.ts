import { GatewayError } from "../../domain/errors/gateway-error.ts";
import { chatFields } from "./chat-fields.ts";
import { missing } from "../request/checks.ts";
import { mendArguments } from "../request/mend-arguments.ts";
import type { JsonObject } from "../../domain/json-fields.ts";
import { objectsIn } from "../../wires/fields.ts";
import { requireModel, requireObject } from "../request/parse-json.ts";

/**
 * Checks a parsed body of `POST /v1/chat/completions`, whose depth must be bounded already. Returns
 * the body itself, unknown fields included, without its null and empty fields. Throws a
 * `GatewayError` of status 400 with OpenAI's message, `param` and `code`.
 */
export function checkChatRequest(body: unknown): JsonObject {
  const fields = requireObject(body);
  requireModel(fields);
  refuseResponsesBody(fields);
  const violation = chatFields(fields);
  if (violation !== undefined) throw violation.toError();
  refuseFieldsAlone(fields);
  const messages = objectsIn(fields["messages"]);
  dropEmptyFields(fields, messages);
  for (const message of messages) {
    for (const call of objectsIn(message["tool_calls"])) mendArguments(call["function"]);
    mendArguments(message["function_call"]);
  }
  return fields;
}

/** Some clients post Responses bodies here for models whose names they know from OpenAI. */
function refuseResponsesBody(body: JsonObject): void {
  if ((body["messages"] ?? undefined) !== undefined || body["input"] === undefined) return;
  throw missing(
    "messages",
    " The body has 'input' and looks like a request of the Responses API, which POST /v1/responses " +
      "takes; this endpoint takes the conversation as 'messages'.",
  ).toError();
}

function refuseFieldsAlone(body: JsonObject): void {
  if ((body["stream_options"] ?? undefined) !== undefined && body["stream"] !== true) {
    throw needsField("stream_options", "stream");
  }
  if ((body["top_logprobs"] ?? undefined) !== undefined && body["logprobs"] !== true) {
    throw needsField("top_logprobs", "logprobs");
  }
}

function needsField(field: string, other: string): GatewayError {
  return new GatewayError("invalid_body", {
    message: `The '${field}' parameter is only allowed when '${other}' is enabled.`,
    param: field,
  });
}

/** Removes fields without effect that upstreams would refuse. Null fields are gone already. */
function dropEmptyFields(body: JsonObject, messages: readonly JsonObject[]): void {
  for (const name of ["tools", "functions", "stop", "modalities"]) dropEmptyList(body, name);
  if (body["tools"] === undefined) {
    Reflect.deleteProperty(body, "tool_choice");
    Reflect.deleteProperty(body, "parallel_tool_calls");
  }
  if (body["functions"] === undefined) Reflect.deleteProperty(body, "function_call");
  for (const message of messages) {
    dropEmptyList(message, "tool_calls");
    // It occurs only beside a call, a refusal or audio; the schema refuses it elsewhere.
    dropEmptyList(message, "content");
  }
}

function dropEmptyList(object: JsonObject, name: string): void {
  const value = object[name];
  if (Array.isArray(value) && value.length === 0) Reflect.deleteProperty(object, name);
}
