import type { ChatChoice, ChatResult, ResultToolCall } from "../../domain/chat/chat.ts";
import { wellFormedJson } from "../../domain/chat/well-formed.ts";
import { checkChoiceCount, checkToolCallCount } from "../shared/answer-bounds.ts";
import { isObject, listOf, nonEmpty, numberOf, objectOf, textOf } from "../shared/json-fields.ts";
import type { JsonObject } from "../shared/json-fields.ts";
import {
  brokenAnswer,
  parseAnswer,
  readContent,
  readFinishReason,
  readUsage,
} from "./read-answer.ts";

/** Reads a whole `chat.completion`. Servers may omit fields, but not the whole answer. */
export function decodeChat(body: Uint8Array, newToolCallId: () => string): ChatResult {
  const answer = parseAnswer(new TextDecoder().decode(body), "choices");
  const choices = listOf(answer["choices"]) ?? [];
  if (choices.length === 0) throw brokenAnswer("the answer has no choices");
  checkChoiceCount(choices.length);
  return {
    choices: choices.map((choice, position) => readChoice(choice, position, newToolCallId)),
    usage: readUsage(answer["usage"]),
    systemFingerprint: textOf(answer["system_fingerprint"]),
    serviceTier: textOf(answer["service_tier"]),
  };
}

function readChoice(choice: unknown, position: number, newToolCallId: () => string): ChatChoice {
  const fields = objectOf(choice);
  const message = objectOf(fields?.["message"]);
  if (fields === undefined || message === undefined) throw brokenAnswer("a choice has no message");
  const said = readMessage(message, newToolCallId);
  const reason = nonEmpty(fields["finish_reason"]);
  if (reason === undefined && isEmpty(said)) throw brokenAnswer("a choice is empty");
  const logprobs = objectOf(fields["logprobs"]);
  return {
    index: numberOf(fields["index"]) ?? position,
    ...said,
    // The answer is complete: a server that omits the reason means the usual one.
    finishReason: readFinishReason(reason ?? "stop", {
      hasToolCalls: said.toolCalls.length > 0,
      hasFunctionCall: said.functionCall !== undefined,
    }),
    logprobs: listOf(logprobs?.["content"]),
    refusalLogprobs: listOf(logprobs?.["refusal"]),
  };
}

type Said = Pick<ChatChoice, "content" | "refusal" | "reasoning" | "toolCalls" | "functionCall">;

function readMessage(message: JsonObject, newToolCallId: () => string): Said {
  const calls = message["tool_calls"] ?? [];
  if (!Array.isArray(calls)) throw brokenAnswer("the tool calls of a message are not a list");
  checkToolCallCount(calls.length);
  return {
    content: readContent(message["content"]),
    refusal: nonEmpty(message["refusal"]),
    reasoning: textOf(message["reasoning_content"]) ?? textOf(message["reasoning"]),
    toolCalls: calls.map((call) => readToolCall(call, newToolCallId)),
    functionCall: readFunctionCall(message["function_call"]),
  };
}

function isEmpty({ content, refusal, reasoning, toolCalls, functionCall }: Said): boolean {
  const texts = [content, refusal, reasoning];
  return (
    texts.every((text) => text === undefined) &&
    toolCalls.length === 0 &&
    functionCall === undefined
  );
}

function readToolCall(call: unknown, newToolCallId: () => string): ResultToolCall {
  if (!isObject(call)) throw brokenAnswer("a tool call is not an object");
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
  return value === undefined || value === null ? "" : wellFormedJson(value);
}

function readFunctionCall(value: unknown): ChatChoice["functionCall"] {
  const call = objectOf(value);
  if (call === undefined) return undefined;
  return { name: textOf(call["name"]) ?? "", arguments: readArguments(call["arguments"]) };
}
