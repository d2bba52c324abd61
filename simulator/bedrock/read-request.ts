import {
  contextWindowIn,
  countPromptTokens,
  countTokens,
  countTurn,
  lastTurn,
  lastUserText,
  type Prompt,
} from "../answer/prompt.ts";
import {
  isList,
  isRecord,
  type JsonRecord,
  listOf,
  numberOf,
  parseJson,
  recordOf,
  stringOf,
} from "../json.ts";
import { type BedrockError, invalid, LateRefusal, modelError, novaOverflow } from "./errors.ts";
import type { CapabilityRow } from "./capabilities.ts";
import { checkCapabilities, checkNova } from "./check-capabilities.ts";
import { checkReasoning } from "./reasoning.ts";
import { checkConversation } from "./check-conversation.ts";
import { checkSchemas } from "./check-schema.ts";
import { checkShape, converseShape, countTokensShape } from "./shapes.ts";
import { readPrompt } from "./read-prompt.ts";
import { hashText } from "../answer/random.ts";

interface ConverseCall {
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
function guardrailActionOn(text: string): GuardrailUse["action"] {
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

/** A Converse or ConverseStream request: the prompt and the fields of this wire only. */
export interface ConverseRequest {
  /** The id or ARN of the path, decoded. */
  readonly model: string;
  readonly prompt: Prompt;
  /** All tokens of the prompt, those of the cache included. */
  readonly promptTokens: number;
  readonly cache: CacheUse | undefined;
  readonly isStreamed: boolean;
  /** The requested limit of the answer, else the model's. */
  readonly maxOutputTokens: number;
  /** How the answer contains the model's thoughts, if it has any. */
  readonly thoughts: "shown" | "omitted" | "redacted";
  readonly guardrail: GuardrailUse | undefined;
  /** Repeated in the answer; undefined if the request has none. */
  readonly serviceTier: string | undefined;
  readonly latency: "standard" | "optimized" | undefined;
  /** JSON pointers of model fields that the answer should contain, such as `/stop_sequence`. */
  readonly responseFieldPaths: readonly string[];
}

/** The tokens before the last `cachePoint` of a prompt. */
interface CacheUse {
  readonly readTokens: number;
  readonly writeTokens: number;
  /** `writeTokens` by lifetime. */
  readonly written: Readonly<Record<"5m" | "1h", number>>;
}

export interface GuardrailUse {
  readonly identifier: string;
  readonly version: string;
  readonly hasTrace: boolean;
  /** A last user message that begins with `guard:` is blocked; `mask:` masks the answer. */
  readonly action: "none" | "blocked" | "masked";
}

const maxPrefixes = 10_000;

/** Remembers the prefixes of prompts. They never expire. */
export class PromptCache {
  readonly #prefixes = new Set<string>();

  /** Undefined for a body without cache points. Prefixes that are too short are not cached. */
  use(body: JsonRecord, model: string, row: CapabilityRow): CacheUse | undefined {
    const prefixes = [...prefixesOf(body)];
    if (prefixes.length === 0) return undefined;
    let readTokens = 0;
    let cachedTokens = 0;
    const written = { "5m": 0, "1h": 0 };
    for (const { prefix, ttl } of prefixes) {
      const tokens = countPromptTokens(readPrompt(prefix, model, row));
      if (tokens < row.minCachedTokens) continue;
      const added = tokens - cachedTokens;
      cachedTokens = tokens;
      if (this.#knows(`${model} ${JSON.stringify(prefix)}`)) {
        readTokens = tokens;
        Object.assign(written, { "5m": 0, "1h": 0 });
      } else written[ttl] += added;
    }
    return { readTokens, writeTokens: cachedTokens - readTokens, written };
  }

  /** OpenAI's needs no marks: it keeps turns from 1,024 tokens on, in steps of 128. */
  readTokens(prompt: Prompt, promptTokens: number): number {
    let tokens = countPromptTokens({ ...prompt, turns: [] });
    let text = JSON.stringify([prompt.model, prompt.tools]);
    let read = 0;
    for (const turn of promptTokens < 1_024 ? [] : prompt.turns) {
      tokens += countTurn(turn);
      text = hashText(text) + JSON.stringify(turn);
      if (tokens >= 1_024 && this.#knows(text)) read = tokens - (tokens % 128);
    }
    return read;
  }

  #knows(text: string): boolean {
    const key = `${text.length} ${hashText(text)} ${hashText(text, 1)}`;
    const isKnown = this.#prefixes.has(key);
    if (this.#prefixes.size >= maxPrefixes) this.#prefixes.clear();
    this.#prefixes.add(key);
    return isKnown;
  }
}

interface CachedPrefix {
  readonly prefix: JsonRecord;
  readonly ttl: "5m" | "1h";
}

/** The prefix before each cache point, shortest first: tools, then system, then messages. */
function* prefixesOf(body: JsonRecord): Generator<CachedPrefix, void, void> {
  const tools = listOf(recordOf(body["toolConfig"])["tools"]);
  const system = listOf(body["system"]);
  const messages = listOf(body["messages"]);
  for (const { before, ttl } of cachedParts(tools)) {
    yield { prefix: { toolConfig: { tools: before } }, ttl };
  }
  const first = { toolConfig: { tools: withoutPoints(tools) } };
  for (const { before, ttl } of cachedParts(system)) {
    yield { prefix: { ...first, system: before }, ttl };
  }
  const earlier: JsonRecord[] = [];
  for (const message of messages.map(recordOf)) {
    const content = listOf(message["content"]);
    for (const { before, ttl } of cachedParts(content)) {
      const last = { ...message, content: before };
      const prefix = { ...first, system: withoutPoints(system), messages: [...earlier, last] };
      yield { prefix, ttl };
    }
    earlier.push({ ...message, content: withoutPoints(content) });
  }
}

/** Other cache points do not belong to a prefix: the next request may have them elsewhere. */
function cachedParts(blocks: readonly unknown[]) {
  return blocks.flatMap((block, index) => {
    const { cachePoint } = recordOf(block);
    if (!isRecord(cachePoint)) return [];
    const ttl: CachedPrefix["ttl"] = cachePoint["ttl"] === "1h" ? "1h" : "5m";
    return [{ before: withoutPoints(blocks.slice(0, index)), ttl }];
  });
}

function withoutPoints(blocks: readonly unknown[]): readonly unknown[] {
  return blocks.filter((block) => !isRecord(recordOf(block)["cachePoint"]));
}

/** The count that CountTokens returns. Throws `BedrockError`. */
export function countInputTokens(body: JsonRecord, model: string, row: CapabilityRow): number {
  checkShape(body, countTokensShape);
  const { converse, invokeModel } = recordOf(body["input"]);
  if (isRecord(converse)) {
    checkConversation(converse, row);
    return countPromptTokens(readPrompt(converse, model, row));
  }
  const text = Buffer.from(stringOf(recordOf(invokeModel)["body"]), "base64").toString();
  try {
    return countTexts(parseJson(text));
  } catch {
    throw invalid("Malformed input request, please reformat your input and try again.");
  }
}

/** Each model has its own body, so all texts in it are counted. */
function countTexts(value: unknown): number {
  if (typeof value === "string") return countTokens(value);
  const inner = isList(value) ? value : Object.values(recordOf(value));
  return inner.reduce<number>((total, item) => total + countTexts(item), 0);
}
