import {
  type Attachment,
  contextWindowIn,
  countPromptTokens,
  type OutputForm,
  type Prompt,
  reasonsByDefault,
  type Tool,
  type ToolUse,
  type Turn,
} from "../answer/prompt.ts";
import type { PlanParts } from "../call.ts";
import { promptedForm } from "../answer/prompted-form.ts";
import { isList, isRecord, type JsonRecord, listOf, recordOf, stringOf } from "../json.ts";
import {
  contextExceeded,
  invalidRequest,
  missing,
  tooLong,
  WireError,
  wrongType,
} from "./errors.ts";

/** A chat request: the prompt and the fields of this wire only. */
export interface ChatRequest {
  readonly prompt: Prompt;
  readonly promptTokens: number;
  readonly cachedTokens: number;
  readonly choiceCount: number;
  readonly isStreamed: boolean;
  /** Whether a stream ends with a chunk that carries the usage. */
  readonly includesUsage: boolean;
  /** The number of alternatives; undefined if no log probabilities were asked for. */
  readonly topLogprobs: number | undefined;
  readonly showsReasoning: boolean;
  /** The tools came as `functions`, which are answered with `function_call`. */
  readonly isLegacyCall: boolean;
}

export type ReadingParts = Pick<PlanParts, "contextWindow" | "bedrock">;

/** Throws `WireError` if OpenAI would refuse the request. */
export function readChatRequest(body: JsonRecord, parts: ReadingParts): ChatRequest {
  const model = readModel(body);
  const turns = readMessages(body["messages"]);
  const { tools, toolUse, isLegacyCall } = readTools(body);
  const showsReasoning = reasonsByDefault(model);
  const isStreamed = body["stream"] === true;
  const streamOptions = body["stream_options"];
  if (isRecord(streamOptions) && !isStreamed) {
    const message = "The 'stream_options' parameter is only allowed when 'stream' is enabled.";
    throw invalidRequest(message, "stream_options");
  }
  checkWithin(body, "temperature", [0, 2]);
  checkWithin(body, "top_p", [0, 1]);
  const prompt: Prompt = {
    model,
    turns,
    tools,
    toolUse,
    output: readOutputForm(body["response_format"], turns),
    maxTokens:
      readInteger(body, "max_completion_tokens", [1, Infinity]) ??
      readInteger(body, "max_tokens", [1, Infinity]),
    stopSequences: readStop(body["stop"]),
    seed: JSON.stringify(body["seed"] ?? null),
    reasoningEffort: stringOf(body["reasoning_effort"]) || (showsReasoning ? "medium" : undefined),
  };
  const promptTokens = countPromptTokens(prompt);
  const window = contextWindowIn(model) ?? parts.contextWindow;
  if (window !== undefined && promptTokens + (prompt.maxTokens ?? 0) > window) {
    throw contextExceeded(window, promptTokens, prompt.maxTokens);
  }
  const topLogprobs = readInteger(body, "top_logprobs", [0, 20]) ?? 0;
  return {
    prompt,
    promptTokens,
    cachedTokens: parts.bedrock.cache.readTokens(prompt, promptTokens),
    isStreamed,
    showsReasoning,
    isLegacyCall,
    choiceCount: readInteger(body, "n", [1, 128]) ?? 1,
    includesUsage: recordOf(streamOptions)["include_usage"] === true,
    topLogprobs: body["logprobs"] === true ? topLogprobs : undefined,
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
    default:
      throw invalidRequest(`Invalid value: '${stringOf(type)}'.`, "response_format.type");
  }
}

function readStop(stop: unknown): string[] {
  const sequences = typeof stop === "string" ? [stop] : listOf(stop);
  if (sequences.length > 4) throw tooLong("stop", 4, sequences.length);
  return sequences.map(stringOf).filter((sequence) => sequence !== "");
}

/** Undefined when the field is absent or null. */
export function readInteger(
  body: JsonRecord,
  field: string,
  range: readonly [number, number],
): number | undefined {
  const value = checkWithin(body, field, range);
  if (value === undefined || Number.isInteger(value)) return value;
  throw wrongType(field, "an integer", value);
}

function checkWithin(
  body: JsonRecord,
  field: string,
  [lowest, highest]: readonly [number, number],
): number | undefined {
  const value = body[field];
  if (value === undefined || value === null) return undefined;
  if (typeof value !== "number") throw wrongType(field, "a number", value);
  if (value >= lowest && value <= highest) return value;
  const side = value < lowest ? "below minimum" : "above maximum";
  const bound = value < lowest ? `>= ${lowest}` : `<= ${highest}`;
  const message = `Invalid '${field}': number ${side} value. Expected a value ${bound}, but got ${value} instead.`;
  throw invalidRequest(
    message,
    field,
    `number_${side.replace("imum", "").replace(" ", "_")}_value`,
  );
}

const roles: Readonly<Record<string, Turn["role"]>> = {
  developer: "system",
  system: "system",
  user: "user",
  assistant: "assistant",
  tool: "tool",
  function: "tool",
};

/** The conversation of a chat request. Throws `WireError` if OpenAI would refuse it. */
function readMessages(messages: unknown): Turn[] {
  if (messages === undefined || messages === null) throw missing("messages");
  if (!isList(messages)) throw wrongType("messages", "an array of objects", messages);
  if (messages.length === 0) throw invalidRequest("Invalid 'messages': empty array.", "messages");
  const callNames = new Map<string, string>();
  return messages.map((message, index) => readMessage(message, `messages[${index}]`, callNames));
}

function readMessage(message: unknown, path: string, callNames: Map<string, string>): Turn {
  if (!isRecord(message)) throw wrongType(path, "an object", message);
  const role = roles[stringOf(message["role"])];
  if (role === undefined) {
    throw invalidRequest(`Invalid value: '${stringOf(message["role"])}'.`, `${path}.role`);
  }
  const toolCalls = readToolCalls(message, callNames);
  const content = readContent(message["content"], `${path}.content`);
  if (message["content"] === undefined && role !== "assistant") throw missing(`${path}.content`);
  const callId = stringOf(message["tool_call_id"]);
  const name = stringOf(message["name"]) || callNames.get(callId);
  return { role, name, toolCalls, ...content };
}

function readToolCalls(message: JsonRecord, callNames: Map<string, string>): Turn["toolCalls"] {
  const { function_call: legacy } = message;
  const calls = isRecord(legacy) ? [{ function: legacy }] : listOf(message["tool_calls"]);
  return calls.map((call) => {
    const { id, function: called, custom } = recordOf(call);
    const body = recordOf(called ?? custom);
    const name = stringOf(body["name"]);
    callNames.set(stringOf(id), name);
    return { name, input: stringOf(body["arguments"] ?? body["input"]) };
  });
}

function readContent(content: unknown, path: string): Pick<Turn, "text" | "attachments"> {
  if (content === undefined || content === null) return { text: "", attachments: [] };
  if (typeof content === "string") return { text: content, attachments: [] };
  if (!isList(content)) throw wrongType(path, "one of a string or array of objects", content);
  const texts: string[] = [];
  const attachments: Attachment[] = [];
  for (const [index, part] of content.entries()) {
    if (!isRecord(part)) throw wrongType(`${path}[${index}]`, "an object", part);
    const attachment = readAttachment(part);
    if (attachment !== undefined) attachments.push(attachment);
    else texts.push(stringOf(part["text"] ?? part["refusal"]));
  }
  return { text: texts.join("\n"), attachments };
}

function readAttachment(part: JsonRecord): Attachment | undefined {
  switch (part["type"]) {
    case "image_url":
      return { kind: "image", name: undefined, ...readUrl(recordOf(part["image_url"])["url"]) };
    case "input_audio": {
      const { data, format } = recordOf(part["input_audio"]);
      const sizeBytes = base64Size(stringOf(data));
      return { kind: "audio", name: undefined, mediaType: `audio/${stringOf(format)}`, sizeBytes };
    }
    case "file": {
      const { filename, file_data: data } = recordOf(part["file"]);
      return { kind: "file", name: stringOf(filename) || undefined, ...readUrl(data) };
    }
    default:
      return undefined;
  }
}

function readUrl(url: unknown): Pick<Attachment, "mediaType" | "sizeBytes"> {
  const data = /^data:([^;,]*)(?:;[^,]*)?,/.exec(stringOf(url).slice(0, 256));
  if (data === null) return { mediaType: undefined, sizeBytes: undefined };
  const sizeBytes = base64Size(stringOf(url).slice(data[0].length));
  return { mediaType: data[1] === "" ? undefined : data[1], sizeBytes };
}

function base64Size(data: string): number {
  const padding = data.endsWith("==") ? 2 : data.endsWith("=") ? 1 : 0;
  return Math.floor((data.length * 3) / 4) - padding;
}

/** Tools and the choice among them. Throws `WireError` if OpenAI would refuse them. */
function readTools(
  body: JsonRecord,
): Pick<Prompt, "tools" | "toolUse"> & Pick<ChatRequest, "isLegacyCall"> {
  const isLegacyCall = isList(body["functions"]);
  const tools = isLegacyCall
    ? listOf(body["functions"]).map((tool) => readFunction(recordOf(tool)))
    : listOf(body["tools"]).map((tool, index) => readTool(tool, index));
  const { function_call: called } = body;
  const legacyChoice = isRecord(called) ? { type: "function", function: called } : called;
  const choice = (isLegacyCall ? legacyChoice : body["tool_choice"]) ?? undefined;
  if (choice !== undefined && tools.length === 0) {
    const message = "'tool_choice' is only allowed when 'tools' are specified.";
    throw invalidRequest(message, "tool_choice");
  }
  const toolUse = readChoice(choice, !isLegacyCall && body["parallel_tool_calls"] !== false);
  const unknown = toolUse.only?.find((name) => !tools.some((tool) => tool.name === name));
  if (unknown === undefined) return { tools, toolUse, isLegacyCall };
  throw invalidRequest(`No tool named '${unknown}' was specified.`, "tool_choice");
}

function readTool(tool: unknown, index: number): Tool {
  const { type, function: called, custom } = recordOf(tool);
  if (type === "function" && isRecord(called)) return readFunction(called);
  if (type === "custom" && isRecord(custom)) return readCustom(custom);
  throw invalidRequest(`Invalid value: '${stringOf(type)}'.`, `tools[${index}].type`);
}

function readFunction({ name, description, parameters }: JsonRecord): Tool {
  return {
    kind: "function",
    name: stringOf(name),
    description: stringOf(description),
    schema: isRecord(parameters) ? parameters : { type: "object" },
  };
}

function readCustom({ name, description }: JsonRecord): Tool {
  return { kind: "text", name: stringOf(name), description: stringOf(description) };
}

function readChoice(choice: unknown, isParallel: boolean): ToolUse {
  if (choice === "none" || choice === "required") {
    return { mode: choice, only: undefined, isParallel };
  }
  const { type, function: called, custom, allowed_tools: allowed } = recordOf(choice);
  if (type === "allowed_tools") {
    const { mode, tools } = recordOf(allowed);
    const only = listOf(tools).map((tool) => toolName(recordOf(tool)));
    return { mode: mode === "required" ? "required" : "auto", only, isParallel };
  }
  if (called === undefined && custom === undefined) {
    return { mode: "auto", only: undefined, isParallel };
  }
  const name = stringOf(recordOf(called ?? custom)["name"]);
  return { mode: "required", only: [name], isParallel };
}

function toolName(tool: JsonRecord): string {
  return stringOf(recordOf(tool["function"] ?? tool["custom"])["name"] ?? tool["name"]);
}
