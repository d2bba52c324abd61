import {
  type AnswerEvent,
  collectAnswer,
  type CollectedCall,
  type FinishEvent,
  textAnswer,
} from "../answer/answer.ts";
import type { Fault } from "../faults/fault-modes.ts";
import type { Reply } from "../reply.ts";
import { isRecord, type JsonRecord, parseJson, recordOf } from "../json.ts";
import type { ConverseRequest, GuardrailUse } from "./read-request.ts";
import { tokenize } from "../answer/prompt.ts";
import { writeAnswer } from "../answer/write-answer.ts";
import { type BodyDetails, inflatedUsage, withBodyFault } from "../faults/bodies.ts";
import { errorReply, streamException } from "./errors.ts";
import { markOfThoughts, reasoningSignature, redactedThoughts } from "./reasoning.ts";

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

const blockedText = "Sorry, the guardrail of this model does not allow an answer.";

/** An answer in which a name was found and replaced. */
const maskedText = "Please write to {NAME}.";

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

type Thinker = Pick<ConverseRequest, "model" | "thoughts">;

/** The block of an unstreamed answer; omitted thoughts are an empty text with a signature. */
function reasoningContent(thoughts: string, { model, thoughts: shown }: Thinker): JsonRecord {
  if (shown === "redacted") return { redactedContent: redactedThoughts(model, thoughts) };
  const text = shown === "shown" ? thoughts : "";
  const signature = reasoningSignature({ model, text, mark: markOfThoughts(thoughts) });
  return { reasoningText: { signature, text } };
}

/** The delta for a piece of the thoughts; undefined if they are not shown. */
export function reasoningDelta(piece: string, { thoughts }: Thinker): JsonRecord | undefined {
  return thoughts === "shown" ? { text: piece } : undefined;
}

/** The delta at the end of the thoughts. */
export function reasoningEnd(thoughts: string, thinker: Thinker): JsonRecord {
  const { redactedContent, reasoningText } = reasoningContent(thoughts, thinker);
  if (redactedContent !== undefined) return { redactedContent };
  return { signature: recordOf(reasoningText)["signature"] };
}

/** An unstreamed answer with the fault applied; exceptions within streams refuse it. */
export function bodyReply(body: JsonRecord, details: BodyDetails): Reply {
  const exception = streamException(details.fault.mode);
  return exception === undefined ? withBodyFault(body, details) : errorReply(exception.error);
}

/** InvokeModel's header with the count of tokens. */
export function countHeader(input: number, { mode }: Fault): Readonly<Record<string, string>> {
  if (mode === "ok-no-usage") return {};
  const count = mode === "wrong-usage" ? inflatedUsage({ input })["input"] : input;
  return { "x-amzn-bedrock-input-token-count": String(count) };
}
