import type { ChatRequest } from "../../../domain/chat/chat.ts";

/**
 * Removes fields without effect that upstreams would refuse: empty lists, and choices among tools
 * when there are none. Null fields are gone already.
 */
export function dropEmptyFields(request: ChatRequest): void {
  for (const name of emptyFields(request)) Reflect.deleteProperty(request, name);
  for (const message of request.messages) {
    if (isEmptyList(message.tool_calls)) Reflect.deleteProperty(message, "tool_calls");
    // Empty content occurs only beside a call, a refusal or audio; the schema refuses it elsewhere.
    if (isEmptyList(message.content)) Reflect.deleteProperty(message, "content");
  }
}

function emptyFields(request: ChatRequest): readonly string[] {
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
