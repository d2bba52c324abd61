import { contextWindowIn } from "../../answer/model-name.ts";
import { countPromptTokens } from "../../answer/prompt-tokens.ts";
import { lastTurn, lastUserText, type Prompt } from "../../answer/prompt.ts";
import {
  isRecord,
  listOf,
  numberOf,
  recordOf,
  stringOf,
  type JsonRecord,
} from "../../read-json.ts";
import { LateRefusal, invalid, modelError, type BedrockError } from "../bedrock-error.ts";
import type { CapabilityRow } from "../account/capability-row.ts";
import { checkCapabilities } from "../checks/check-capabilities.ts";
import { checkConversation } from "../checks/check-conversation.ts";
import { checkNova } from "../checks/check-nova.ts";
import { checkReasoning } from "../checks/check-reasoning.ts";
import { checkSchemas } from "../checks/check-schema.ts";
import type { ConverseRequest, GuardrailUse } from "./converse-request.ts";
import { converseShape } from "./converse-shapes.ts";
import { novaOverflow } from "../exceptions.ts";
import type { PromptCache } from "./prompt-cache.ts";
import { readPrompt } from "./read-prompt.ts";
import { checkShape } from "./shape.ts";

export interface ConverseCall {
  readonly body: JsonRecord;
  readonly model: string;
  readonly row: CapabilityRow;
  readonly isStreamed: boolean;
  /** For models that have no context window of their own. Undefined: no limit. */
  readonly contextWindow: number | undefined;
  readonly cache: PromptCache;
}

/** Throws `BedrockError` if the provider or the model would refuse the request. */
export function readConverseRequest(call: ConverseCall): ConverseRequest {
  const { body, model, row, isStreamed } = call;
  checkShape(body, converseShape(isStreamed));
  checkCapabilities(body, row, isStreamed);
  checkSchemas(body, row);
  checkConversation(body, row);
  if (row.novaGeneration !== undefined) checkNova(body, row.novaGeneration);
  if (row.contextText === "claude" || row.api === "everything") {
    checkReasoning(body, model, row);
  }
  const prompt = readPrompt(body, model, row);
  const promptTokens = countPromptTokens(prompt);
  const requestedMaxTokens = numberOf(recordOf(body["inferenceConfig"])["maxTokens"]);
  checkContext({ ...call, promptTokens, requestedMaxTokens: requestedMaxTokens ?? 0 });
  return {
    model,
    prompt,
    promptTokens,
    cache: call.cache.use(body, model, row),
    isStreamed,
    maxOutputTokens: requestedMaxTokens ?? row.maxOutputTokens ?? 0,
    thoughts: readThoughts(body, prompt, row),
    guardrail: readGuardrail(body["guardrailConfig"], prompt),
    serviceTier: stringOf(recordOf(body["serviceTier"])["type"]) || undefined,
    latency: readLatency(recordOf(body["performanceConfig"])["latency"]),
    responseFieldPaths: listOf(body["additionalModelResponseFieldPaths"]).map(stringOf),
  };
}

function readGuardrail(config: unknown, prompt: Prompt): GuardrailUse | undefined {
  if (!isRecord(config)) return undefined;
  const { guardrailIdentifier, guardrailVersion, trace } = config;
  const last = lastTurn(prompt);
  return {
    identifier: stringOf(guardrailIdentifier),
    version: stringOf(guardrailVersion),
    hasTrace: trace === "enabled" || trace === "enabled_full",
    action: last?.role === "user" ? guardrailActionOn(last.text) : "none",
  };
}

/** The provider's own text that makes a model redact its thoughts, for tests. */
const redactionTrigger = "ANTHROPIC_MAGIC_STRING_TRIGGER_REDACTED_THINKING";

function readThoughts(
  body: JsonRecord,
  prompt: Prompt,
  { omitsThoughts }: CapabilityRow,
): ConverseRequest["thoughts"] {
  if (lastUserText(prompt).includes(redactionTrigger)) return "redacted";
  const fields = recordOf(body["additionalModelRequestFields"]);
  const { display } = recordOf(fields["thinking"]);
  const isOmitted = display === undefined ? omitsThoughts : display === "omitted";
  return isOmitted ? "omitted" : "shown";
}

/** The guardrail's action on the last user message. */
export function guardrailActionOn(text: string): GuardrailUse["action"] {
  const [, word] = /^\s*(guard|mask):/i.exec(text) ?? [];
  if (word === undefined) return "none";
  return word.toLowerCase() === "guard" ? "blocked" : "masked";
}

function readLatency(latency: unknown): ConverseRequest["latency"] {
  return latency === "standard" || latency === "optimized" ? latency : undefined;
}

function checkContext(
  call: ConverseCall & { readonly promptTokens: number; readonly requestedMaxTokens: number },
): void {
  const { model, row, promptTokens, requestedMaxTokens } = call;
  const window = contextWindowIn(model) ?? row.contextTokens ?? call.contextWindow;
  if (window === undefined || promptTokens + requestedMaxTokens <= window) return;
  switch (row.contextText) {
    case "plain":
      throw plainOverflow(promptTokens, window);
    case "nova":
      throw new LateRefusal("ValidationException", novaOverflow);
    case "mistral":
      throw modelError(
        `Prompt contains ${promptTokens} tokens, too large for model with ${window} maximum ` +
          "context length",
      );
    case "claude":
      throw claudeOverflow(call, window);
  }
}

function claudeOverflow(
  {
    promptTokens,
    requestedMaxTokens,
  }: { readonly promptTokens: number; readonly requestedMaxTokens: number },
  window: number,
): BedrockError {
  if (promptTokens > window) {
    return modelError(`prompt is too long: ${promptTokens} tokens > ${window} maximum`);
  }
  return modelError(
    `input length and \`max_tokens\` exceed context limit: ${promptTokens} + ` +
      `${requestedMaxTokens} > ${window}, decrease input length or \`max_tokens\` and try again`,
  );
}

/** Models other than Claude mention their window only if the prompt is not much larger. */
function plainOverflow(promptTokens: number, window: number): BedrockError {
  if (promptTokens > window * 4) return invalid("Input is too long for requested model.");
  return invalid(
    `This model's maximum context length is ${window} tokens. Please reduce the length of the ` +
      "prompt",
  );
}
