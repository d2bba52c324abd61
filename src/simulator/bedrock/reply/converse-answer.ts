import type { AnswerEvent } from "../../answer/answer-event.ts";
import type { FinishEvent } from "../../answer/collect-answer.ts";
import { textAnswer } from "../../answer/limit-answer.ts";
import { tokenize } from "../../answer/tokenizer.ts";
import { writeAnswer } from "../../answer/write-answer.ts";
import type { JsonRecord } from "../../read-json.ts";
import type { ConverseRequest, GuardrailUse } from "../request/converse-request.ts";

/** The model's answer, or the guardrail's in its place. A refusal is plain text. */
export function answerEvents(request: ConverseRequest): Iterable<AnswerEvent> {
  const { text } = guardrails[request.guardrail?.action ?? "none"];
  return text === undefined ? writeAnswer(request.prompt, 0) : textAnswer(tokenize(text));
}

export function stopReasonOf(finish: FinishEvent, request: ConverseRequest): string {
  if ((request.guardrail?.action ?? "none") !== "none") return "guardrail_intervened";
  switch (finish.reason) {
    case "length":
      return "max_tokens";
    case "tool-calls":
      return "tool_use";
    case "stop":
      return finish.stopSequence === undefined ? "end_turn" : "stop_sequence";
  }
}

/** The provider's `usage`, whose input tokens exclude cached ones. */
export function usageBody(request: ConverseRequest, outputTokens: number): JsonRecord {
  const { promptTokens, cache } = request;
  const { readTokens, writeTokens } = cache ?? { readTokens: 0, writeTokens: 0 };
  return {
    inputTokens: promptTokens - readTokens - writeTokens,
    outputTokens,
    totalTokens: promptTokens + outputTokens,
    ...(cache === undefined
      ? {}
      : {
          cacheReadInputTokens: readTokens,
          cacheWriteInputTokens: writeTokens,
          cacheDetails: (["1h", "5m"] as const)
            .map((ttl) => ({ ttl, inputTokens: cache.written[ttl] }))
            .filter(({ inputTokens }) => inputTokens > 0),
        }),
  };
}

/** The model's own fields that the request asked for; undefined if there are none. */
export function responseFields(
  finish: FinishEvent,
  request: ConverseRequest,
): JsonRecord | undefined {
  const fields = { ...stopField(finish, request), ...thoughtField(finish, request) };
  return Object.keys(fields).length === 0 ? undefined : fields;
}

function stopField(
  finish: FinishEvent,
  { responseFieldPaths: paths }: ConverseRequest,
): JsonRecord | undefined {
  const stopSequence = finish.stopSequence ?? null;
  // Claude's streams have the field in `delta`; requests ask for either place.
  if (paths.includes("/delta/stop_sequence")) return { delta: { stop_sequence: stopSequence } };
  return paths.includes("/stop_sequence") ? { stop_sequence: stopSequence } : undefined;
}

/** Claude's own count of its thoughts, which Converse's usage does not separate. */
function thoughtField(
  { reasoningTokens }: FinishEvent,
  { responseFieldPaths: paths }: ConverseRequest,
): JsonRecord | undefined {
  if (!paths.includes("/usage/output_tokens_details")) return undefined;
  return { usage: { output_tokens_details: { thinking_tokens: reasoningTokens } } };
}

/** Fields that the answer, or its `metadata` event, repeats from the request. */
export function echoedFields({ serviceTier, latency, guardrail }: ConverseRequest): JsonRecord {
  return {
    ...(guardrail?.hasTrace === true
      ? { trace: { guardrail: guardrails[guardrail.action].trace(guardrail.identifier) } }
      : {}),
    ...(latency === undefined ? {} : { performanceConfig: { latency } }),
    ...(serviceTier === undefined ? {} : { serviceTier: { type: serviceTier } }),
  };
}

/** The provider's form of an id such as `call_abc`. */
export function toolUseId(callId: string): string {
  return `tooluse_${callId.replace(/^call_/, "")}`;
}

export const blockedText = "Sorry, the guardrail of this model does not allow an answer.";

/** An answer in which a name was found and replaced. */
export const maskedText = "Please write to {NAME}.";

interface Guardrail {
  /** Replaces the answer. */
  readonly text?: string;
  trace(identifier: string): JsonRecord;
}

const blockedWords = {
  customWords: [{ match: "guard:", action: "BLOCKED" }],
  managedWordLists: [],
};
const maskedNames = {
  piiEntities: [{ match: "Ada Lovelace", type: "NAME", action: "ANONYMIZED" }],
  regexes: [],
};

const guardrails: Readonly<Record<GuardrailUse["action"], Guardrail>> = {
  none: { trace: () => ({ actionReason: "No action." }) },
  blocked: {
    text: blockedText,
    trace: (identifier) => ({
      actionReason: "Guardrail blocked.",
      inputAssessment: { [identifier]: { wordPolicy: blockedWords } },
    }),
  },
  masked: {
    text: maskedText,
    trace: (identifier) => ({
      actionReason: "Guardrail masked.",
      outputAssessments: { [identifier]: [{ sensitiveInformationPolicy: maskedNames }] },
    }),
  },
};
