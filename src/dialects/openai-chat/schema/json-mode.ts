import type { ChatMessage, ChatRequest, ContentPart } from "../../../domain/chat/chat.ts";
import { GatewayError } from "../../../domain/errors/gateway-error.ts";
import * as messages from "../../request/messages.ts";

/**
 * Refuses JSON mode when no message asks for JSON, as OpenAI does: a model that must write JSON
 * without being told may write white space until its limit.
 */
export function refuseSilentJsonMode({
  response_format: format,
  messages: turns,
}: ChatRequest): void {
  if (format?.type !== "json_object" || turns.some(saysJson)) return;
  throw new GatewayError("invalid_body", { message: messages.jsonNotAsked(), param: "messages" });
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
