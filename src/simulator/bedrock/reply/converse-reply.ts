import type { AnswerEvent } from "../../answer/answer-event.ts";
import { collectAnswer, type CollectedCall } from "../../answer/collect-answer.ts";
import type { Fault } from "../../faults/fault-mode.ts";
import type { Reply } from "../../frame.ts";
import { isRecord, parseJson, type JsonRecord } from "../../read-json.ts";
import { bodyReply } from "./body-reply.ts";
import {
  echoedFields,
  responseFields,
  stopReasonOf,
  toolUseId,
  usageBody,
} from "./converse-answer.ts";
import type { ConverseRequest } from "../request/converse-request.ts";
import { reasoningContent } from "./reasoning-blocks.ts";

/** Answers Converse. */
export function converseReply(
  request: ConverseRequest,
  answer: Iterable<AnswerEvent>,
  { fault, latencyMs }: { readonly fault: Fault; readonly latencyMs: number },
): Reply {
  const { reasoning, text, refusal = "", calls, finish } = collectAnswer(answer);
  const words = text + refusal;
  const content = [
    ...(reasoning === "" ? [] : [{ reasoningContent: reasoningContent(reasoning, request) }]),
    ...(words === "" ? [] : [{ text: words }]),
    ...calls.flatMap(callBlock),
  ];
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

/** Omits a call whose JSON input was cut at the token limit. */
function callBlock({ id, name, input }: CollectedCall): JsonRecord[] {
  let read: unknown;
  try {
    read = parseJson(input);
  } catch {
    return [];
  }
  return isRecord(read) ? [{ toolUse: { input: read, name, toolUseId: toolUseId(id) } }] : [];
}
