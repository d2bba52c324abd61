import { contextWindowIn, reasonsByDefault } from "../answer/model-name.ts";
import { countPromptTokens } from "../answer/prompt-tokens.ts";
import type { OutputForm, Prompt } from "../answer/prompt.ts";
import { promptedForm } from "../answer/schema/prompted-form.ts";
import { isRecord, listOf, recordOf, stringOf, type JsonRecord } from "../read-json.ts";
import { readMessages } from "./read-messages.ts";
import { readTools } from "./read-tools.ts";
import { contextExceeded, invalidRequest, WireError, wrongType } from "./wire-error.ts";

/** A chat request: the prompt and the fields of this wire only. */
export interface ChatRequest {
  readonly prompt: Prompt;
  readonly promptTokens: number;
  readonly choiceCount: number;
  readonly isStreamed: boolean;
  /** Whether a stream ends with a chunk that carries the usage. */
  readonly includesUsage: boolean;
  /** The number of alternatives; undefined if no log probabilities were asked for. */
  readonly topLogprobs: number | undefined;
  /** Answer tool calls as `function_call`. */
  readonly isLegacyCall: boolean;
  readonly showsReasoning: boolean;
}

/** Throws `WireError` if OpenAI would refuse the request. `contextWindow` undefined: no limit. */
export function readChatRequest(body: JsonRecord, contextWindow: number | undefined): ChatRequest {
  const model = readModel(body);
  const turns = readMessages(body["messages"]);
  const { tools, toolUse, isLegacy } = readTools(body);
  const showsReasoning = reasonsByDefault(model);
  const isStreamed = body["stream"] === true;
  const streamOptions = body["stream_options"];
  if (isRecord(streamOptions) && !isStreamed) {
    const message = "The 'stream_options' parameter is only allowed when 'stream' is enabled.";
    throw invalidRequest(message, "stream_options", null);
  }
  readNumber(body, "temperature", { noun: "decimal", lowest: 0, highest: 2 });
  readNumber(body, "top_p", { noun: "decimal", lowest: 0, highest: 1 });
  const prompt: Prompt = {
    model,
    turns,
    tools,
    toolUse,
    output: readOutputForm(body["response_format"], turns),
    maxTokens:
      readInteger(body, "max_completion_tokens", { lowest: 1 }) ??
      readInteger(body, "max_tokens", { lowest: 1 }),
    stopSequences: readStop(body["stop"]),
    seed: JSON.stringify(body["seed"] ?? null),
    reasoningEffort: stringOf(body["reasoning_effort"]) || (showsReasoning ? "medium" : undefined),
  };
  const promptTokens = countPromptTokens(prompt);
  const window = contextWindowIn(model) ?? contextWindow;
  if (window !== undefined && promptTokens + (prompt.maxTokens ?? 0) > window) {
    throw contextExceeded(window, promptTokens, prompt.maxTokens);
  }
  const topLogprobs = readInteger(body, "top_logprobs", { lowest: 0, highest: 20 }) ?? 0;
  return {
    prompt,
    promptTokens,
    isStreamed,
    showsReasoning,
    choiceCount: readInteger(body, "n", { lowest: 1, highest: 128 }) ?? 1,
    includesUsage: recordOf(streamOptions)["include_usage"] === true,
    topLogprobs: body["logprobs"] === true ? topLogprobs : undefined,
    isLegacyCall: isLegacy,
  };
}

export function readModel(body: JsonRecord): string {
  const model = body["model"];
  if (model === undefined || model === null || model === "") {
    throw new WireError(400, { message: "you must provide a model parameter" });
  }
  if (typeof model !== "string") throw wrongType("model", "a string", model);
  return model;
}

function readOutputForm(format: unknown, turns: Prompt["turns"]): OutputForm {
  const { type, json_schema: named } = recordOf(format);
  switch (type) {
    case undefined:
    case "text":
      return promptedForm(turns);
    case "json_object": {
      const prompted = promptedForm(turns);
      return prompted.kind === "schema" ? prompted : { kind: "json" };
    }
    case "json_schema": {
      const schema = recordOf(named)["schema"];
      return isRecord(schema) ? { kind: "schema", schema } : { kind: "json" };
    }
    default: {
      const supported = "Supported values are: 'json_object', 'json_schema', and 'text'.";
      const message = `Invalid value: '${stringOf(type)}'. ${supported}`;
      throw invalidRequest(message, "response_format.type", "invalid_value");
    }
  }
}

function readStop(stop: unknown): string[] {
  const sequences = typeof stop === "string" ? [stop] : listOf(stop);
  if (sequences.length > 4) {
    const message =
      "Invalid 'stop': array too long. Expected an array with maximum length 4, " +
      `but got an array with length ${sequences.length} instead.`;
    throw invalidRequest(message, "stop", "array_above_max_length");
  }
  return sequences.map(stringOf).filter((sequence) => sequence !== "");
}

interface Range {
  readonly lowest: number;
  readonly highest?: number;
}

/** Undefined when the field is absent or null. */
export function readInteger(body: JsonRecord, field: string, range: Range): number | undefined {
  return readNumber(body, field, { ...range, noun: "integer" });
}

function readNumber(
  body: JsonRecord,
  field: string,
  range: Range & { readonly noun: "integer" | "decimal" },
): number | undefined {
  const value = body[field];
  if (value === undefined || value === null) return undefined;
  const { noun, lowest, highest = Number.POSITIVE_INFINITY } = range;
  const isWhole = noun === "integer";
  if (typeof value !== "number" || (isWhole && !Number.isInteger(value))) {
    throw wrongType(field, isWhole ? "an integer" : "a decimal", value);
  }
  if (value < lowest) {
    const message = `Invalid '${field}': ${noun} below minimum value. Expected a value >= ${lowest}, but got ${value} instead.`;
    throw invalidRequest(message, field, `${noun}_below_min_value`);
  }
  if (value > highest) {
    const message = `Invalid '${field}': ${noun} above maximum value. Expected a value <= ${highest}, but got ${value} instead.`;
    throw invalidRequest(message, field, `${noun}_above_max_value`);
  }
  return value;
}
