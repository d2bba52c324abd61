import type {
  Conversation,
  Options,
  OutputCap,
  Tool,
  ToolChoice,
  ToolKind,
} from "../../domain/chat/conversation.ts";
import {
  flagOf,
  isObject,
  type JsonObject,
  numberOf,
  objectOf,
  textOf,
} from "../../domain/json-fields.ts";
import { fieldNames, fieldsBeyond, objectsIn } from "../fields.ts";
import { readFormat } from "../openai-format.ts";
import { fieldsBeside, writeMark } from "./cache-marks.ts";
import { readMessage } from "./read-message.ts";

/**
 * Reads a body of `POST /v1/chat/completions`. The body must be checked, and have lost its null and
 * empty fields. What has no name in a conversation is kept as it is; `stop` becomes a list, and a
 * field that says no more than its absence, such as `stream: false`, is gone.
 */
export function readChatRequest(body: JsonObject): Conversation {
  const tools = readTools(body);
  const effort = textOf(body["reasoning_effort"]);
  return {
    wire: "chat",
    model: textOf(body["model"]) ?? "",
    isStreamed: body["stream"] === true,
    turns: objectsIn(body["messages"]).map((message, index) =>
      readMessage(message, `messages[${index}]`),
    ),
    tools,
    toolChoice: readToolChoice(body[choiceField(tools)]),
    format: readFormat(body["response_format"], "json_schema"),
    caps: readCaps(body),
    options: readOptions(body),
    thinking: effort === undefined ? undefined : { effort },
    extra: extraOf(body, tools),
  };
}

/** Where there are both, the choice among the deprecated functions is a field without a name. */
export function choiceField(tools: readonly Tool[]): "tool_choice" | "function_call" {
  return tools.length === 0 || tools.some(({ isOld }) => isOld === undefined)
    ? "tool_choice"
    : "function_call";
}

const rootFields = fieldNames(
  "model stream messages tools functions response_format max_completion_tokens " +
    "max_tokens temperature top_p stop n presence_penalty frequency_penalty logit_bias " +
    "logprobs top_logprobs seed parallel_tool_calls verbosity service_tier user " +
    "safety_identifier prompt_cache_key metadata reasoning_effort",
);

function extraOf(body: JsonObject, tools: readonly Tool[]): Conversation["extra"] {
  const extra = fieldsBeyond(body, rootFields, choiceField(tools)) ?? {};
  // Not OpenAI's field, so it was not checked.
  if (numberOf(extra["top_k"]) === undefined) return extra;
  const { top_k: _, ...others } = extra;
  return others;
}

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

function readTools(body: JsonObject): readonly Tool[] {
  const tools = objectsIn(body["tools"]).map((tool, index) => {
    const kind: ToolKind = tool["type"] === "custom" ? "custom" : "function";
    const { cacheMark, extra } = fieldsBeside(tool, typeField, kind);
    const around = { cacheMark, extra, at: `tools[${index}]` };
    return readTool(objectOf(tool[kind]) ?? {}, kind, around);
  });
  const old = objectsIn(body["functions"]).map((definition, index) => {
    const at = `functions[${index}]`;
    return { ...readTool(definition, "function", { at }), isOld: true } as const;
  });
  return old.length === 0 ? tools : [...tools, ...old];
}

const typeField = fieldNames("type");

/** A mark beside the definition needs none within it. */
type AroundTool = Pick<Tool, "cacheMark" | "extra" | "at">;

function readTool(definition: JsonObject, kind: ToolKind, around: AroundTool): Tool {
  const isFunction = kind === "function";
  const grammar = isFunction ? undefined : grammarOf(definition["format"]);
  const known = isFunction ? functionFields : customFields;
  const own = grammar && "format";
  const { cacheMark, extra: inner } = fieldsBeside(definition, known, own);
  return {
    kind,
    name: textOf(definition["name"]) ?? "",
    description: textOf(definition["description"]),
    parameters: isFunction ? objectOf(definition["parameters"]) : undefined,
    strict: isFunction ? flagOf(definition["strict"]) : undefined,
    grammar,
    cacheMark: around.cacheMark ?? (cacheMark && { ...cacheMark, isInner: true }),
    extra: around.extra,
    inner: around.cacheMark && cacheMark ? { ...inner, ...writeMark(cacheMark, undefined) } : inner,
    at: around.at,
  };
}

const customFields = fieldNames("name description");
const functionFields = fieldNames("name description parameters strict");

/** Undefined for a format with other fields, which stays as it is. */
function grammarOf(format: unknown): Tool["grammar"] {
  if (!isObject(format) || format["type"] !== "grammar") return undefined;
  const { grammar } = format;
  if (!isObject(grammar)) return undefined;
  const { syntax, definition } = grammar;
  if (typeof syntax !== "string" || typeof definition !== "string") return undefined;
  const others = fieldsBeyond(format, typeField, "grammar") ?? fieldsBeyond(grammar, grammarFields);
  return others === undefined ? { syntax, definition } : undefined;
}

const grammarFields = fieldNames("syntax definition");

/** Objects of a choice have no further fields that a server knows. */
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

function textsOf(value: unknown): readonly string[] | undefined {
  return Array.isArray(value) ? value.filter((text) => typeof text === "string") : undefined;
}

function isCounts(value: unknown): value is Readonly<Record<string, number>> {
  return isObject(value) && Object.values(value).every((count) => typeof count === "number");
}
