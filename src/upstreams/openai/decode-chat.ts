import type { ChatChoice, ChatResult, ResultToolCall } from "../../domain/chat.ts";
import { UpstreamFailure } from "../../domain/upstream-failure.ts";
import { isObject, listOf, nonEmpty, numberOf, objectOf, textOf } from "../shared/json-fields.ts";
import type { JsonObject } from "../shared/json-fields.ts";
import { parseAnswer, readFinishReason, readUsage } from "./read-answer.ts";

/** Reads a whole `chat.completion`, forgiving what servers leave out. */
export function decodeChat(body: Uint8Array, newToolCallId: () => string): ChatResult {
  const answer = parseAnswer(new TextDecoder().decode(body));
  const choices = (listOf(answer["choices"]) ?? [])
    .filter(isObject)
    .map((choice, position) => readChoice(choice, position, newToolCallId));
  if (choices.length === 0) {
    throw new UpstreamFailure({ kind: "broken-answer", message: "the answer has no choices" });
  }
  return {
    choices,
    usage: readUsage(answer["usage"]),
    systemFingerprint: textOf(answer["system_fingerprint"]),
    serviceTier: textOf(answer["service_tier"]),
  };
}

function readChoice(choice: JsonObject, position: number, newToolCallId: () => string): ChatChoice {
  const message = objectOf(choice["message"]) ?? {};
  const toolCalls = (listOf(message["tool_calls"]) ?? [])
    .filter(isObject)
    .map((call) => readToolCall(call, newToolCallId));
  const functionCall = readFunctionCall(message["function_call"]);
  const logprobs = objectOf(choice["logprobs"]);
  return {
    index: numberOf(choice["index"]) ?? position,
    content: textOf(message["content"]),
    refusal: nonEmpty(message["refusal"]),
    reasoning: textOf(message["reasoning_content"]) ?? textOf(message["reasoning"]),
    toolCalls,
    functionCall,
    // The answer is whole: a server that leaves the reason out means the usual one.
    finishReason: readFinishReason(nonEmpty(choice["finish_reason"]) ?? "stop", {
      hasToolCalls: toolCalls.length > 0,
      hasFunctionCall: functionCall !== undefined,
    }),
    logprobs: listOf(logprobs?.["content"]),
    refusalLogprobs: listOf(logprobs?.["refusal"]),
  };
}

function readToolCall(call: JsonObject, newToolCallId: () => string): ResultToolCall {
  const custom = objectOf(call["custom"]);
  const body = custom ?? objectOf(call["function"]) ?? {};
  return {
    id: nonEmpty(call["id"]) ?? newToolCallId(),
    kind: custom === undefined ? "function" : "custom",
    name: textOf(body["name"]) ?? "",
    arguments: readArguments(body[custom === undefined ? "arguments" : "input"]),
  };
}

/** Some servers send the arguments as an object instead of its JSON text. */
export function readArguments(value: unknown): string {
  if (typeof value === "string") return value;
  return value === undefined || value === null ? "" : JSON.stringify(value);
}

function readFunctionCall(value: unknown): ChatChoice["functionCall"] {
  const call = objectOf(value);
  if (call === undefined) return undefined;
  return { name: textOf(call["name"]) ?? "", arguments: readArguments(call["arguments"]) };
}
