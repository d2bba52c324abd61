import type { ChatMessage, Conversation, ContentPart } from "../../../domain/chat/conversation.ts";
import { GatewayError } from "../../../domain/errors/gateway-error.ts";
import { chatFields } from "./chat-fields.ts";
import { clip, missing } from "../../request/checks.ts";
import { mendArguments } from "../../request/mend-arguments.ts";
import { type JsonObject } from "../../../domain/json-object.ts";
import { requireModel, requireObject } from "../../request/parse-json.ts";

/**
 * Reads a parsed body of `POST /v1/chat/completions`, whose depth must be bounded already. The body
 * itself becomes the request, unknown fields included, and loses its null and empty fields. Throws a
 * `GatewayError` of status 400 with OpenAI's message, `param` and `code`.
 */
export function parseChatRequest(body: unknown): Conversation {
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
  throw missing(
    "messages",
    " The body has 'input' and looks like a request of the Responses API; this endpoint takes the " +
      "conversation as 'messages'.",
  ).toError();
}

function assertChatFields(body: JsonObject): asserts body is Conversation {
  const violation = chatFields(body);
  if (violation !== undefined) throw violation.toError();
}

function refuseFieldsAlone(request: Conversation): void {
  if ((request.stream_options ?? undefined) !== undefined && request.stream !== true) {
    throw needsField("stream_options", "stream");
  }
  if ((request.top_logprobs ?? undefined) !== undefined && request.logprobs !== true) {
    throw needsField("top_logprobs", "logprobs");
  }
}

function needsField(field: string, other: string): GatewayError {
  return new GatewayError("invalid_body", {
    message: `The '${field}' parameter is only allowed when '${other}' is enabled.`,
    param: field,
  });
}

function refuseUnknownChoice(request: Conversation): void {
  const tool = namedTool(request);
  if (tool !== undefined && !offersTool(request, tool)) {
    throw notOffered(tool.name, { what: "Tool", list: "tools", param: "tool_choice" });
  }
  const call = request.function_call ?? undefined;
  if (call === undefined || typeof call === "string") return;
  if (request.functions?.some(({ name }) => name === call.name) === true) return;
  throw notOffered(call.name, { what: "Function", list: "functions", param: "function_call" });
}

interface Choice {
  readonly what: "Tool" | "Function";
  /** The field that should have the name. */
  readonly list: string;
  readonly param: string;
}

function notOffered(name: string, { what, list, param }: Choice): GatewayError {
  const message = `${what} choice '${clip(name)}' not found in '${list}' parameter.`;
  return new GatewayError("invalid_value", { message, param });
}

interface NamedTool {
  readonly type: "function" | "custom";
  readonly name: string;
}

function namedTool({ tool_choice: choice }: Conversation): NamedTool | undefined {
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

function offersTool(request: Conversation, { type, name }: NamedTool): boolean {
  const tools = request.tools ?? [];
  return tools.some((tool) => {
    const offered = tool.type === "function" ? tool.function.name : tool.custom.name;
    return tool.type === type && offered === name;
  });
}

/** Removes fields without effect that upstreams would refuse. Null fields are gone already. */
function dropEmptyFields(request: Conversation): void {
  for (const name of emptyFields(request)) Reflect.deleteProperty(request, name);
  for (const message of request.messages) {
    if (isEmptyList(message.tool_calls)) Reflect.deleteProperty(message, "tool_calls");
    // Empty content occurs only beside a call, a refusal or audio; the schema refuses it elsewhere.
    if (isEmptyList(message.content)) Reflect.deleteProperty(message, "content");
  }
}

function emptyFields(request: Conversation): readonly string[] {
  const names: string[] = [];
  for (const name of ["tools", "functions", "stop", "modalities"] as const) {
    if (isEmptyList(request[name])) names.push(name);
  }
  if (!hasItems(request.tools)) {
    names.push("tool_choice", "parallel_tool_calls");
  }
  if (!hasItems(request.functions)) names.push("function_call");
  return names;
}

function isEmptyList(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}

function hasItems(list: readonly unknown[] | null | undefined): boolean {
  return list !== null && list !== undefined && list.length > 0;
}

/**
 * Refuses JSON mode when no message asks for JSON, as OpenAI does: a model that must write JSON
 * without being told may write white space until its limit.
 */
function refuseSilentJsonMode({ response_format: format, messages: turns }: Conversation): void {
  if (format?.type !== "json_object" || turns.some(saysJson)) return;
  throw new GatewayError("invalid_body", {
    message:
      "'messages' must contain the word 'json' in some form, " +
      "to use 'response_format' of type 'json_object'.",
    param: "messages",
  });
}

function saysJson({ content, tool_calls: calls }: ChatMessage): boolean {
  const isInContent = typeof content === "string" ? isSaid(content) : content?.some(partSaysJson);
  return isInContent === true || (calls ?? []).some((call) => isSaid(JSON.stringify(call)));
}

function partSaysJson(part: ContentPart): boolean {
  return part.type === "text" && isSaid(part.text);
}

function isSaid(text: string): boolean {
  return /json/i.test(text);
}

function replaceHalvesInArguments({ messages }: Conversation): void {
  for (const message of messages) {
    for (const call of message.tool_calls ?? []) {
      if (call.type === "function") mendArguments(call.function);
    }
    mendArguments(message["function_call"]);
  }
}
