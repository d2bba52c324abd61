import type { AnswerEvent } from "../../answer/answer-event.ts";
import type { FinishEvent } from "../../answer/collect-answer.ts";
import { tokenize } from "../../answer/tokenizer.ts";
import { writeAnswer } from "../../answer/write-answer.ts";
import type { JsonRecord } from "../../read-json.ts";
import type { ConverseRequest, GuardrailUse } from "../request/converse-request.ts";

/** What the model says, or what the guardrail says in its place. Refusals are texts like others. */
export function answerEvents(request: ConverseRequest): Iterable<AnswerEvent> {
  switch (request.guardrail?.action) {
    case "blocked":
      return wordsOf(blockedText);
    case "masked":
      return wordsOf(maskedText);
    case "none":
    case undefined:
      return writeAnswer(request.prompt, 0);
  }
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

/** The provider's `usage`: its input tokens are those that the cache had no part in. */
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

/** The model's own fields that the request pointed at; undefined when there is none to repeat. */
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
  // Claude's field has moved into `delta` for streams, and both places are asked for.
  if (paths.includes("/delta/stop_sequence")) return { delta: { stop_sequence: stopSequence } };
  return paths.includes("/stop_sequence") ? { stop_sequence: stopSequence } : undefined;
}

/** Claude counts its thoughts; Converse's own count does not tell them apart. */
function thoughtField(
  { reasoningTokens }: FinishEvent,
  { responseFieldPaths: paths }: ConverseRequest,
): JsonRecord | undefined {
  if (!paths.includes("/usage/output_tokens_details")) return undefined;
  return { usage: { output_tokens_details: { thinking_tokens: reasoningTokens } } };
}

/** What the answer repeats of the request, equal on whole answers and in `metadata` events. */
export function echoedFields({ serviceTier, latency, guardrail }: ConverseRequest): JsonRecord {
  return {
    ...(guardrail?.hasTrace === true ? { trace: { guardrail: guardrailTrace(guardrail) } } : {}),
    ...(latency === undefined ? {} : { performanceConfig: { latency } }),
    ...(serviceTier === undefined ? {} : { serviceTier: { type: serviceTier } }),
  };
}

/** `call_abc` as this provider names it. */
export function toolUseId(callId: string): string {
  return `tooluse_${callId.replace(/^call_/, "")}`;
}

export const blockedText = "Sorry, the guardrail of this model does not allow an answer.";

/** An answer in which a name was found and replaced. */
export const maskedText = "Please write to {NAME}.";

function* wordsOf(text: string): Generator<AnswerEvent, void, void> {
  let completionTokens = 0;
  for (const piece of tokenize(text)) {
    completionTokens += 1;
    yield { kind: "text", piece, tokens: 1 };
  }
  yield {
    kind: "finish",
    reason: "stop",
    completionTokens,
    reasoningTokens: 0,
  };
}

function guardrailTrace({ action, identifier }: GuardrailUse): JsonRecord {
  switch (action) {
    case "none":
      return { actionReason: "No action." };
    case "blocked": {
      const words = { customWords: [{ match: "guard:", action: "BLOCKED" }], managedWordLists: [] };
      return {
        actionReason: "Guardrail blocked.",
        inputAssessment: { [identifier]: { wordPolicy: words } },
      };
    }
    case "masked": {
      const names = [{ match: "Ada Lovelace", type: "NAME", action: "ANONYMIZED" }];
      const policy = { piiEntities: names, regexes: [] };
      return {
        actionReason: "Guardrail masked.",
        outputAssessments: { [identifier]: [{ sensitiveInformationPolicy: policy }] },
      };
    }
  }
}
