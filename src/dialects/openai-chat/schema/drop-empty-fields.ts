import type { ChatMessage, ChatRequest } from "../../../domain/chat/chat.ts";

/**
 * Removes fields without effect that upstreams would refuse: empty lists, and choices among tools
 * when there are none. Returns the request itself when it has no such field.
 */
export function dropEmptyFields(request: ChatRequest): ChatRequest {
  const names = emptyFields(request);
  const hasEmptyMessages = request.messages.some(hasEmptyList);
  if (names.length === 0 && !hasEmptyMessages) return request;
  const messages = hasEmptyMessages ? request.messages.map(withoutEmptyLists) : request.messages;
  const copy: Writable<ChatRequest> = { ...request, messages };
  for (const name of names) delete copy[name];
  return copy;
}

type Writable<Type> = { -readonly [Name in keyof Type]: Type[Name] };

type Droppable =
  | "tools"
  | "tool_choice"
  | "parallel_tool_calls"
  | "functions"
  | "function_call"
  | "stop"
  | "modalities";

function emptyFields(request: ChatRequest): readonly Droppable[] {
  const names: Droppable[] = [];
  for (const name of ["tools", "functions", "stop", "modalities"] as const) {
    if (isEmptyList(request[name])) names.push(name);
  }
  if (!hasItems(request.tools)) {
    if (isPresent(request.tool_choice)) names.push("tool_choice");
    if (isPresent(request.parallel_tool_calls)) names.push("parallel_tool_calls");
  }
  if (!hasItems(request.functions) && isPresent(request.function_call)) {
    names.push("function_call");
  }
  return names;
}

/** Empty content occurs only beside a call, a refusal or audio; the schema refuses it elsewhere. */
function hasEmptyList(message: ChatMessage): boolean {
  return isEmptyList(message.tool_calls) || isEmptyList(message.content);
}

function withoutEmptyLists(message: ChatMessage): ChatMessage {
  if (!hasEmptyList(message)) return message;
  const copy: Writable<ChatMessage> = { ...message };
  if (isEmptyList(copy.tool_calls)) delete copy.tool_calls;
  if (isEmptyList(copy.content)) copy.content = null;
  return copy;
}

function isEmptyList(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}

function hasItems(list: readonly unknown[] | null | undefined): boolean {
  return list !== null && list !== undefined && list.length > 0;
}

function isPresent(value: unknown): boolean {
  return value !== undefined && value !== null;
}
