import {
  type Conversation,
  fieldOf,
  flatNameOf,
  type Turn,
} from "../../domain/chat/conversation.ts";
import { GatewayError } from "../../domain/errors/gateway-error.ts";
import { clip } from "./checks.ts";

/** Throws 400 for what only the whole conversation shows. */
export function checkConversation(conversation: Conversation): void {
  const { format, turns, toolChoice } = conversation;
  // A model that must write JSON without being told may write white space until its limit.
  if (format?.type === "json" && !turns.some(saysJson)) throw silentJson(conversation);
  if (toolChoice?.mode === "named") requireTool(conversation, toolChoice);
  // Chat's own servers check these.
  if (toolChoice?.mode !== "allowed" || conversation.wire === "chat") return;
  for (const tool of toolChoice.tools) requireTool(conversation, tool);
}

function saysJson({ blocks }: Turn): boolean {
  return blocks.some((block) => {
    if (block.type === "tool-call") return isSaid(block.name) || isSaid(block.arguments);
    const parts = block.type === "tool-result" ? block.content : [block];
    return parts.some((part) => part.type === "text" && isSaid(part.text));
  });
}

function isSaid(text: string): boolean {
  return /json/i.test(text);
}

function silentJson(conversation: Conversation): GatewayError {
  const isChat = conversation.wire === "chat";
  return new GatewayError("invalid_body", {
    message:
      `${isChat ? "'messages'" : "Response input messages"} must contain the word 'json' in some ` +
      `form${isChat ? "," : ""} to use '${fieldOf(conversation, "format")}' of type 'json_object'.`,
    param: fieldOf(conversation, "turns"),
  });
}

function requireTool(
  { tools }: Conversation,
  { kind, name }: { readonly kind: string; readonly name: string },
): void {
  if (tools.some((tool) => tool.kind === kind && flatNameOf(tool) === name)) return;
  const isOld = tools.length > 0 && tools.every((tool) => tool.isOld === true);
  const [what, list] = isOld ? ["Function", "functions"] : ["Tool", "tools"];
  throw new GatewayError("invalid_value", {
    message: `${what} choice '${clip(name)}' not found in '${list}' parameter.`,
    param: isOld ? "function_call" : "tool_choice",
  });
}
