import type { ChatRequest } from "../../../domain/chat/chat.ts";
import { GatewayError } from "../../../domain/errors/gateway-error.ts";
import { replaceHalvesInArguments } from "./call-arguments.ts";
import { chatFields } from "./chat-fields.ts";
import type { JsonObject } from "../../../domain/json-object.ts";
import { dropEmptyFields } from "./drop-empty-fields.ts";
import { refuseSilentJsonMode } from "./json-mode.ts";
import * as messages from "../../request/messages.ts";
import { requireModel, requireObject } from "../../request/request-body.ts";

/**
 * Reads a parsed body of `POST /v1/chat/completions`, whose depth must be bounded already. The body
 * itself becomes the request, unknown fields included, and loses its null and empty fields. Throws a
 * `GatewayError` of status 400 with OpenAI's message, `param` and `code`.
 */
export function parseChatRequest(body: unknown): ChatRequest {
  const fields = requireObject(body);
  requireModel(fields);
  refuseResponsesBody(fields);
  assertChatFields(fields);
  refuseFieldsAlone(fields);
  refuseSilentJsonMode(fields);
  dropEmptyFields(fields);
  replaceHalvesInArguments(fields);
  refuseUnknownChoice(fields);
  return fields;
}

/** Some clients post Responses bodies here for models whose names they know from OpenAI. */
function refuseResponsesBody(body: JsonObject): void {
  if ((body["messages"] ?? undefined) !== undefined || body["input"] === undefined) return;
  throw new GatewayError("missing_required_parameter", {
    message: messages.responsesBody("messages"),
    param: "messages",
  });
}

function assertChatFields(body: JsonObject): asserts body is ChatRequest {
  const violation = chatFields(body);
  if (violation !== undefined) throw violation.toError();
}

function refuseFieldsAlone(request: ChatRequest): void {
  if ((request.stream_options ?? undefined) !== undefined && request.stream !== true) {
    throw needsField("stream_options", "stream");
  }
  if ((request.top_logprobs ?? undefined) !== undefined && request.logprobs !== true) {
    throw needsField("top_logprobs", "logprobs");
  }
}

function needsField(field: string, other: string): GatewayError {
  return new GatewayError("invalid_body", {
    message: messages.onlyAllowedWith(field, other),
    param: field,
  });
}

function refuseUnknownChoice(request: ChatRequest): void {
  const tool = namedTool(request);
  if (tool !== undefined && !offersTool(request, tool)) {
    throw new GatewayError("invalid_value", {
      message: messages.choiceNotOffered(tool.name, "Tool", "tools"),
      param: "tool_choice",
    });
  }
  const call = request.function_call ?? undefined;
  if (call === undefined || typeof call === "string") return;
  if (request.functions?.some(({ name }) => name === call.name) === true) return;
  throw new GatewayError("invalid_value", {
    message: messages.choiceNotOffered(call.name, "Function", "functions"),
    param: "function_call",
  });
}

interface NamedTool {
  readonly type: "function" | "custom";
  readonly name: string;
}

function namedTool({ tool_choice: choice }: ChatRequest): NamedTool | undefined {
  if (choice === undefined || choice === null || typeof choice === "string") return undefined;
  switch (choice.type) {
    case "function":
      return { type: choice.type, name: choice.function.name };
    case "custom":
      return { type: choice.type, name: choice.custom.name };
    case "allowed_tools":
      return undefined;
  }
}

function offersTool(request: ChatRequest, { type, name }: NamedTool): boolean {
  const tools = request.tools ?? [];
  return tools.some((tool) => {
    const offered = tool.type === "function" ? tool.function.name : tool.custom.name;
    return tool.type === type && offered === name;
  });
}
