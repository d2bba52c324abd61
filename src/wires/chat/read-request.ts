import type { ExtraFields } from "../../domain/chat/answer.ts";
import type {
  AnswerFormat,
  Block,
  CacheMark,
  Conversation,
  Options,
  OutputCap,
  ResultContent,
  Tool,
  ToolCallBlock,
  ToolChoice,
  ToolKind,
  Turn,
} from "../../domain/chat/conversation.ts";
import {
  flagOf,
  isObject,
  type JsonObject,
  nonEmpty,
  numberOf,
  objectOf,
  textOf,
} from "../../domain/json-fields.ts";
import { fieldsBeyond, objectsIn } from "../fields.ts";

/**
 * Reads a body of `POST /v1/chat/completions`. The body must be checked, and have lost its null and
 * empty fields.
 */
export function readChatRequest(body: JsonObject): Conversation {
  const extra = fieldsBeyond(body, rootFields);
  return {
    wire: "chat",
    model: textOf(body["model"]) ?? "",
    isStreamed: body["stream"] === true,
    turns: objectsIn(body["messages"]).map((message, index) =>
      readMessage(message, `messages[${index}]`),
    ),
    tools: readTools(body),
    toolChoice: readToolChoice(body["tool_choice"] ?? body["function_call"]),
    format: readFormat(body["response_format"]),
    caps: readCaps(body),
    options: readOptions(body),
    thinking: thinkingOf(textOf(body["reasoning_effort"])),
    extra: extra ?? {},
  };
}

const rootFields: ReadonlySet<string> = new Set([
  "model",
  "stream",
  "messages",
  "tools",
  "functions",
  "tool_choice",
  "function_call",
  "response_format",
  "max_completion_tokens",
  "max_tokens",
  "temperature",
  "top_p",
  "top_k",
  "stop",
  "n",
  "presence_penalty",
  "frequency_penalty",
  "logit_bias",
  "logprobs",
  "top_logprobs",
  "seed",
  "parallel_tool_calls",
  "verbosity",
  "service_tier",
  "user",
  "safety_identifier",
  "prompt_cache_key",
  "metadata",
  "reasoning_effort",
]);

function readCaps(body: JsonObject): readonly OutputCap[] {
  const caps: OutputCap[] = [];
  for (const field of ["max_completion_tokens", "max_tokens"]) {
    const tokens = numberOf(body[field]);
    if (tokens !== undefined) caps.push({ field, tokens });
  }
  return caps;
}

function readOptions(body: JsonObject): Options {
  const stop = body["stop"];
  const bias = body["logit_bias"];
  return {
    temperature: numberOf(body["temperature"]),
    topP: numberOf(body["top_p"]),
    topK: numberOf(body["top_k"]),
    stop: typeof stop === "string" ? [stop] : textsOf(stop),
    n: numberOf(body["n"]),
    presencePenalty: numberOf(body["presence_penalty"]),
    frequencyPenalty: numberOf(body["frequency_penalty"]),
    logitBias: isCounts(bias) ? bias : undefined,
    logprobs: flagOf(body["logprobs"]),
    topLogprobs: numberOf(body["top_logprobs"]),
    seed: body["seed"],
    parallelToolCalls: flagOf(body["parallel_tool_calls"]),
    verbosity: textOf(body["verbosity"]),
    serviceTier: textOf(body["service_tier"]),
    user: textOf(body["user"]),
    safetyIdentifier: textOf(body["safety_identifier"]),
    promptCacheKey: textOf(body["prompt_cache_key"]),
    metadata: objectOf(body["metadata"]),
  };
}

function thinkingOf(effort: string | undefined): Conversation["thinking"] {
  return effort === undefined ? undefined : { effort };
}

function readMessage(message: JsonObject, at: string): Turn {
  const name = textOf(message["name"]);
  const role = message["role"];
  const blocks: Block[] = [];
  const cacheMark = markOf(message);
  switch (role) {
    case "tool":
    case "function": {
      const callId = role === "tool" ? (textOf(message["tool_call_id"]) ?? "") : undefined;
      const content = contentOf(message, at).filter(isResultContent);
      const isPlain = isPlainContent(message);
      blocks.push({ type: "tool-result", callId, name, content, isPlain, at });
      const extra = fieldsBeyond(message, toolFields);
      return { role: "user", blocks, cacheMark, extra, at };
    }
    case "assistant": {
      readThoughts(message, at, blocks);
      blocks.push(...contentOf(message, at));
      const refusal = textOf(message["refusal"]);
      if (refusal !== undefined) {
        blocks.push({ type: "refusal", text: refusal, inner: besideContent, at: `${at}.refusal` });
      }
      const spoken = objectOf(message["audio"]);
      if (spoken !== undefined) {
        const id = textOf(spoken["id"]) ?? "";
        const inner = fieldsBeyond(spoken, idField);
        blocks.push({ type: "spoken", id, inner, at: `${at}.audio` });
      }
      readCalls(message, at, blocks);
      const extra = fieldsBeyond(message, assistantFields);
      const isPlain = isPlainContent(message);
      return { role, blocks, isPlain, name, cacheMark, extra, at };
    }
    default: {
      const own = role === "system" || role === "developer" ? role : "user";
      blocks.push(...contentOf(message, at));
      const extra = fieldsBeyond(message, messageFields);
      return { role: own, blocks, isPlain: isPlainContent(message), name, cacheMark, extra, at };
    }
  }
}

/** The refusal stood in the message's own field, not among the parts of its content. */
export const besideContent: ExtraFields = Object.freeze({});

const messageFields: ReadonlySet<string> = new Set([
  "role",
  "content",
  "name",
  "cache_control",
  "prompt_cache_breakpoint",
]);
const toolFields: ReadonlySet<string> = new Set([...messageFields, "tool_call_id"]);
const assistantFields: ReadonlySet<string> = new Set([
  ...messageFields,
  "refusal",
  "audio",
  "tool_calls",
  "function_call",
  "reasoning_content",
]);
const idField: ReadonlySet<string> = new Set(["id"]);

function isPlainContent({ content }: JsonObject): true | undefined {
  return typeof content === "string" ? true : undefined;
}

function contentOf(message: JsonObject, at: string): readonly Block[] {
  const { content } = message;
  if (typeof content === "string") return [{ type: "text", text: content, at: `${at}.content` }];
  return objectsIn(content).map((part, index) => readPart(part, `${at}.content[${index}]`));
}

function readPart(part: JsonObject, at: string): Block {
  const type = textOf(part["type"]) ?? "";
  const cacheMark = markOf(part);
  const extra = fieldsBeyond(part, partFields, type);
  switch (type) {
    case "text":
    case "refusal":
      return { type, text: textOf(part[type]) ?? "", cacheMark, extra, at };
    case "image_url": {
      const image = objectOf(part[type]) ?? {};
      const inner = fieldsBeyond(image, imageFields);
      const detail = textOf(image["detail"]);
      return {
        type: "image",
        url: textOf(image["url"]) ?? "",
        detail,
        cacheMark,
        extra,
        inner,
        at,
      };
    }
    case "input_audio": {
      const audio = objectOf(part[type]) ?? {};
      const inner = fieldsBeyond(audio, audioFields);
      const format = textOf(audio["format"]) ?? "";
      return {
        type: "audio",
        data: textOf(audio["data"]) ?? "",
        format,
        cacheMark,
        extra,
        inner,
        at,
      };
    }
    case "file": {
      const file = objectOf(part[type]) ?? {};
      const inner = fieldsBeyond(file, fileFields);
      const data = textOf(file["file_data"]);
      const filename = textOf(file["filename"]);
      return { type: "document", data, filename, cacheMark, extra, inner, at };
    }
    default:
      return { type: "foreign", value: part, at };
  }
}

const partFields: ReadonlySet<string> = new Set([
  "type",
  "cache_control",
  "prompt_cache_breakpoint",
]);
const imageFields: ReadonlySet<string> = new Set(["url", "detail"]);
const audioFields: ReadonlySet<string> = new Set(["data", "format"]);
/** `file_id` stays with the fields without a name: no upstream of another wire has it. */
const fileFields: ReadonlySet<string> = new Set(["file_data", "filename"]);

function isResultContent(block: Block): block is ResultContent {
  return ["text", "image", "document", "foreign"].includes(block.type);
}

/**
 * Thoughts that a caller sends back: `reasoning_content` as this gateway's answers have it, signed
 * ones in OpenRouter's `reasoning_details` or, as LiteLLM's callers keep them, `thinking_blocks`.
 */
function readThoughts(message: JsonObject, at: string, blocks: Block[]): void {
  const text = textOf(message["reasoning_content"]);
  if (text !== undefined) {
    blocks.push({ type: "reasoning", text, at: `${at}.reasoning_content` });
  }
  const details = objectsIn(message["reasoning_details"]);
  const field = details.length > 0 ? "reasoning_details" : "thinking_blocks";
  const sent = details.length > 0 ? details : objectsIn(message["thinking_blocks"]);
  sent.forEach((detail, index) => {
    const block = readDetail(detail, `${at}.${field}[${index}]`);
    if (block !== undefined) blocks.push(block);
  });
}

function readDetail(detail: JsonObject, at: string): Block | undefined {
  switch (detail["type"]) {
    case "reasoning.text":
    case "thinking": {
      const opaque = nonEmpty(detail["signature"]);
      // Clients omit an empty text, but thoughts without visible text are signed too.
      const text = textOf(detail["text"]) ?? textOf(detail["thinking"]) ?? "";
      return opaque === undefined ? undefined : { type: "reasoning", text, opaque, at };
    }
    case "reasoning.encrypted":
    case "redacted_thinking": {
      const opaque = nonEmpty(detail["data"]);
      if (opaque === undefined) return undefined;
      return { type: "reasoning", text: "", opaque, isRedacted: true, at };
    }
    default:
      return undefined;
  }
}

function readCalls(message: JsonObject, at: string, blocks: Block[]): void {
  objectsIn(message["tool_calls"]).forEach((call, index) => {
    const kind: ToolKind = call["type"] === "custom" ? "custom" : "function";
    const id = textOf(call["id"]) ?? "";
    const extra = fieldsBeyond(call, callFields, kind);
    blocks.push({ ...readCall(call, kind), id, extra, at: `${at}.tool_calls[${index}]` });
  });
  const old = objectOf(message["function_call"]);
  if (old === undefined) return;
  const call = readCall(message, "function", "function_call");
  blocks.push({ ...call, id: undefined, at: `${at}.function_call` });
}

/** The stream's `index`, which SDKs echo, is no field of a request. */
const callFields: ReadonlySet<string> = new Set(["id", "type", "index"]);

function readCall(
  holder: JsonObject,
  kind: ToolKind,
  field: string = kind,
): Omit<ToolCallBlock, "id" | "at"> {
  const body = objectOf(holder[field]) ?? {};
  const content = kind === "custom" ? "input" : "arguments";
  return {
    type: "tool-call",
    kind,
    name: textOf(body["name"]) ?? "",
    arguments: textOf(body[content]) ?? "",
    inner: fieldsBeyond(body, nameField, content),
  };
}

const nameField: ReadonlySet<string> = new Set(["name"]);

function readTools(body: JsonObject): readonly Tool[] {
  const tools = objectsIn(body["tools"]).map((tool, index) => {
    const kind: ToolKind = tool["type"] === "custom" ? "custom" : "function";
    const at = `tools[${index}]`;
    const cacheMark = markOf(tool);
    const extra = fieldsBeyond(tool, partFields, kind);
    return { ...readTool(objectOf(tool[kind]) ?? {}, kind, at), ...kept({ cacheMark, extra }) };
  });
  const old = objectsIn(body["functions"]).map((definition, index) => {
    const tool = readTool(definition, "function", `functions[${index}]`);
    return { ...tool, isOld: true } as const;
  });
  return old.length === 0 ? tools : [...tools, ...old];
}

function readTool(definition: JsonObject, kind: ToolKind, at: string): Tool {
  const format = objectOf(definition["format"]);
  const grammar = format && objectOf(format["grammar"]);
  return {
    kind,
    name: textOf(definition["name"]) ?? "",
    description: textOf(definition["description"]),
    parameters: objectOf(definition["parameters"]),
    strict: flagOf(definition["strict"]),
    grammar: grammar && {
      syntax: textOf(grammar["syntax"]) ?? "",
      definition: textOf(grammar["definition"]) ?? "",
    },
    cacheMark: markOf(definition),
    inner: fieldsBeyond(definition, definitionFields),
    at,
  };
}

const definitionFields: ReadonlySet<string> = new Set([
  "name",
  "description",
  "parameters",
  "strict",
  "format",
  "cache_control",
  "prompt_cache_breakpoint",
]);

function readToolChoice(choice: unknown): ToolChoice | undefined {
  if (choice === "auto" || choice === "none" || choice === "required") return { mode: choice };
  if (!isObject(choice)) return undefined;
  if (choice["type"] === "allowed_tools") {
    const allowed = objectOf(choice["allowed_tools"]) ?? {};
    const tools = objectsIn(allowed["tools"]).map(toolNameOf);
    return { mode: "allowed", isRequired: allowed["mode"] === "required", tools };
  }
  return { mode: "named", ...toolNameOf(choice) };
}

/** `{type, function: {name}}`, or the deprecated `{name}`. */
function toolNameOf(choice: JsonObject): { readonly kind: ToolKind; readonly name: string } {
  const kind: ToolKind = choice["type"] === "custom" ? "custom" : "function";
  return { kind, name: textOf((objectOf(choice[kind]) ?? choice)["name"]) ?? "" };
}

function readFormat(format: unknown): AnswerFormat | undefined {
  if (!isObject(format)) return undefined;
  switch (format["type"]) {
    case "json_schema": {
      const json = objectOf(format["json_schema"]) ?? {};
      return {
        type: "schema",
        name: textOf(json["name"]),
        description: textOf(json["description"]),
        schema: objectOf(json["schema"]),
        strict: flagOf(json["strict"]),
        extra: fieldsBeyond(json, schemaFields),
      };
    }
    case "json_object":
      return { type: "json", extra: fieldsBeyond(format, partFields) };
    default:
      return { type: "text", extra: fieldsBeyond(format, partFields) };
  }
}

const schemaFields: ReadonlySet<string> = new Set(["name", "description", "schema", "strict"]);

/** The mark after a message, part or tool: Anthropic's field, or OpenAI's. */
function markOf(holder: JsonObject): CacheMark | undefined {
  const control = objectOf(holder["cache_control"]);
  if (control?.["type"] === "ephemeral") {
    const ttl = control["ttl"];
    return { ttl: ttl === "1h" || ttl === "5m" ? ttl : undefined, form: "control" };
  }
  return isObject(holder["prompt_cache_breakpoint"]) ? { form: "breakpoint" } : undefined;
}

/** Without the fields that are undefined. */
function kept<Fields extends object>(fields: Fields): Partial<Fields> {
  const some: Partial<Fields> = {};
  for (const field in fields) if (fields[field] !== undefined) some[field] = fields[field];
  return some;
}

function textsOf(value: unknown): readonly string[] | undefined {
  return Array.isArray(value) ? value.filter((text) => typeof text === "string") : undefined;
}

function isCounts(value: unknown): value is Readonly<Record<string, number>> {
  return isObject(value) && Object.values(value).every((count) => typeof count === "number");
}
