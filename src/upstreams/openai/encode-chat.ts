import type {
  ChatMessage,
  Conversation,
  ContentPart,
  RequestToolCall,
} from "../../domain/chat/conversation.ts";
import type { CallOrigins } from "./call-origin.ts";
import { isObject } from "../../domain/json-fields.ts";
import { only, onlyPart, type ForwardedFields } from "./forwarded-fields.ts";
import type { OpenAiSettings } from "./config.ts";

export interface ChatSettings extends OpenAiSettings {
  readonly fields: ForwardedFields;
  readonly origins: CallOrigins;
}

/** The body for an OpenAI-compatible server, with only the fields that are forwarded to it. */
export function encodeChat(request: Conversation, model: string, settings: ChatSettings): string {
  const { root } = settings.fields;
  const body: Record<string, unknown> = {};
  for (const field in request) {
    if (root.has(field)) body[field] = request[field];
  }
  body["model"] = model;
  body["messages"] = request.messages.map((message) => encodeMessage(message, settings));
  renameMaxTokens(body, settings);
  if (request.stream === true && settings.streamUsage) {
    // Always requested: the ledger needs the counts, even if the caller does not.
    body["stream_options"] = { include_usage: true };
  } else delete body["stream_options"];
  for (const field of settings.dropFields) delete body[field];
  return JSON.stringify(body);
}

function renameMaxTokens(body: Record<string, unknown>, { maxTokensField }: OpenAiSettings): void {
  if (maxTokensField === "as_sent") return;
  const older = body["max_tokens"];
  const newer = body["max_completion_tokens"];
  delete body["max_tokens"];
  delete body["max_completion_tokens"];
  const cap = newer ?? older;
  if (cap !== undefined) body[maxTokensField] = cap;
}

function encodeMessage(sent: ChatMessage, settings: ChatSettings): ChatMessage {
  const message = withOwnId(only(sent, settings.fields.message), settings);
  const role = encodeRole(message, settings);
  const content = encodeContent(message, settings);
  if (message.role !== "assistant") {
    const isSame = role === message.role && content === message.content;
    return isSame ? message : { ...message, role, ...(content !== undefined && { content }) };
  }
  return encodeAssistantMessage(
    { ...message, ...(content !== undefined && { content }) },
    settings,
  );
}

/** The answer to a call goes to the call's upstream with the id that this gave it. */
function withOwnId(message: ChatMessage, { origins }: ChatSettings): ChatMessage {
  const sent = message.tool_call_id;
  if (sent === undefined) return message;
  const { id } = origins.read(sent);
  return id === sent ? message : { ...message, tool_call_id: id };
}

function encodeRole(
  { role }: ChatMessage,
  { instructionRole }: OpenAiSettings,
): ChatMessage["role"] {
  const isInstruction = role === "system" || role === "developer";
  return isInstruction && instructionRole !== "as_sent" ? instructionRole : role;
}

function encodeContent(
  { content }: ChatMessage,
  { fields, flattenTextParts }: ChatSettings,
): ChatMessage["content"] {
  if (content === undefined || content === null || typeof content === "string") return content;
  const parts = content.map((part) => onlyPart(part, fields));
  if (flattenTextParts) return flatten(parts);
  return parts.every((part, index) => part === content[index]) ? content : parts;
}

/**
 * Removes what SDKs echo when they send an answer's message back unchanged: an empty list of calls,
 * which OpenAI refuses in requests, and the stream's `index` in them. Some servers require content,
 * if only null.
 */
function encodeAssistantMessage(message: ChatMessage, settings: ChatSettings): ChatMessage {
  const { tool_calls: calls = [], audio, ...rest } = message;
  const content = isEmpty(rest.content) ? null : rest.content;
  const spoken = isObject(audio) && { audio: only(audio, settings.fields.spoken) };
  const encoded: ChatMessage = { ...rest, ...spoken, content };
  if (calls === null || calls.length === 0) return encoded;
  return { ...encoded, tool_calls: calls.map((call) => encodeToolCall(call, settings)) };
}

function isEmpty(content: ChatMessage["content"]): content is undefined | null | readonly [] {
  return content === undefined || content === null || content.length === 0;
}

/**
 * The fields of a call that are not OpenAI's go back to the upstream that wrote them, and to no
 * other. `extra_content` is a field of Google's requests, too: where nobody has marked the call,
 * the caller's own is sent.
 */
function encodeToolCall(call: RequestToolCall, { fields, origins }: ChatSettings): RequestToolCall {
  const { id, author } = origins.read(call.id);
  if (author === "this") return { ...only(call, everyFieldOf(call)), id };
  const known = only(call, fields.call, author === "unknown" ? "extra_content" : undefined);
  return known.type === "custom"
    ? { ...known, custom: only(known.custom, fields.callBody) }
    : { ...known, function: only(known.function, fields.callBody) };
}

/** All but the number that only a stream has. */
function everyFieldOf(call: RequestToolCall): ReadonlySet<string> {
  return new Set(Object.keys(call).filter((field) => field !== "index"));
}

function flatten(content: readonly ContentPart[]): ChatMessage["content"] {
  const texts: string[] = [];
  for (const part of content) {
    if (!isText(part)) return content;
    texts.push(part.text);
  }
  return texts.join("\n");
}

function isText(part: ContentPart): part is Extract<ContentPart, { type: "text" }> {
  return part.type === "text";
}
