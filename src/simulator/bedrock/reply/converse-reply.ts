import type { AnswerEvent } from "../../answer/answer-event.ts";
import type { Fault } from "../../faults/fault-mode.ts";
import { outsizedAnswer } from "../../faults/outsized-answer.ts";
import type { Reply } from "../../frame.ts";
import { isRecord, parseJson, type JsonRecord } from "../../read-json.ts";
import { bodyReply } from "./body-reply.ts";
import {
  echoedFields,
  responseFields,
  stopReasonOf,
  toolUseId,
  usageBody,
  type FinishEvent,
} from "./converse-answer.ts";
import type { ConverseRequest } from "../request/converse-request.ts";
import { reasoningContent } from "./reasoning-blocks.ts";

/** Answers Converse. */
export function converseReply(
  request: ConverseRequest,
  answer: Iterable<AnswerEvent>,
  { fault, latencyMs }: { readonly fault: Fault; readonly latencyMs: number },
): Reply {
  const { content, finish } = collect(outsizedAnswer(fault) ?? answer, request);
  const fields = responseFields(finish, request);
  const body: JsonRecord = {
    ...(fields === undefined ? {} : { additionalModelResponseFields: fields }),
    metrics: { latencyMs: Math.round(latencyMs) },
    output: { message: { content, role: "assistant" } },
    ...echoedFields(request),
    stopReason: stopReasonOf(finish, request),
    usage: usageBody(request, finish.completionTokens),
  };
  return bodyReply(body, { fault, tokens: finish.completionTokens });
}

interface Collected {
  readonly content: readonly JsonRecord[];
  readonly finish: FinishEvent;
}

interface CollectedCall {
  readonly id: string;
  readonly name: string;
  input: string;
}

function collect(answer: Iterable<AnswerEvent>, request: ConverseRequest): Collected {
  let thoughts = "";
  let text = "";
  const calls: CollectedCall[] = [];
  let finish: FinishEvent = {
    kind: "finish",
    reason: "stop",
    completionTokens: 0,
    reasoningTokens: 0,
  };
  for (const event of answer) {
    switch (event.kind) {
      case "reasoning":
        thoughts += event.piece;
        break;
      case "text":
      case "refusal":
        text += event.piece;
        break;
      case "call":
        calls.push({ id: event.id, name: event.name, input: "" });
        break;
      case "input": {
        const call = calls[event.index];
        if (call !== undefined) call.input += event.piece;
        break;
      }
      case "finish":
        finish = event;
        break;
    }
  }
  const content = [
    ...thoughtsBlock(thoughts, request),
    ...textBlock(text),
    ...calls.flatMap(callBlock),
  ];
  return { content, finish };
}

function thoughtsBlock(thoughts: string, request: ConverseRequest): JsonRecord[] {
  return thoughts === "" ? [] : [{ reasoningContent: reasoningContent(thoughts, request) }];
}

function textBlock(text: string): JsonRecord[] {
  return text === "" ? [] : [{ text }];
}

/** A call whose input was cut off at the token limit is no JSON, and left out. */
function callBlock({ id, name, input }: CollectedCall): JsonRecord[] {
  let read: unknown;
  try {
    read = parseJson(input);
  } catch {
    return [];
  }
  return isRecord(read) ? [{ toolUse: { input: read, name, toolUseId: toolUseId(id) } }] : [];
}
