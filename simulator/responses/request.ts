import { createHash } from "node:crypto";
import { isRecord, type JsonRecord, listOf, recordOf, stringOf } from "../json.ts";
import { invalidRequest, missing, WireError } from "../openai/errors.ts";
import { type ChatRequest, readChatRequest, type ReadingParts } from "../openai/request.ts";

/** A request of this wire, and what its answer needs beside the prompt. */
export interface ResponsesRequest extends ChatRequest {
  /** The groups of tools by the names of their tools. */
  readonly groups: ReadonlyMap<string, string>;
  /** Whether thoughts are sent as ciphertexts. */
  readonly encrypts: boolean;
}

/** Throws `WireError` if OpenAI would refuse the request. */
export function readResponsesRequest(body: JsonRecord, parts: ReadingParts): ResponsesRequest {
  const unknown = Object.keys(body).find((field) => !fields.has(field));
  if (unknown !== undefined) throw unknownParameter(unknown);
  const { input, instructions, max_output_tokens: cap, reasoning, text, store } = body;
  if (input === undefined) throw missing("input");
  if (typeof cap === "number" && cap < 16) {
    const message = `Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got ${cap} instead.`;
    throw invalidRequest(message, "max_output_tokens", "integer_below_min_value");
  }
  const include = listOf(body["include"]);
  const groups = new Map<string, string>();
  const tools = listOf(body["tools"]).flatMap((tool) => readTools(recordOf(tool), groups));
  const model = stringOf(body["model"]);
  const items =
    typeof input === "string" ? [{ role: "user", content: input }] : listOf(input).map(recordOf);
  const messages = items.flatMap((item, index) => readItem(item, `input[${index}]`, model));
  const first = instructions === undefined ? [] : [{ role: "system", content: instructions }];
  const read = readChatRequest(
    withoutUndefined({
      model,
      messages: [...first, ...messages],
      stream: body["stream"],
      tools: tools.length === 0 ? undefined : tools,
      tool_choice: readChoice(body["tool_choice"], tools.length > 0),
      parallel_tool_calls: body["parallel_tool_calls"],
      max_completion_tokens: cap,
      temperature: body["temperature"],
      top_p: body["top_p"],
      reasoning_effort: recordOf(reasoning)["effort"],
      response_format: readFormat(recordOf(recordOf(text)["format"])),
      logprobs: include.includes("message.output_text.logprobs"),
      top_logprobs: body["top_logprobs"],
    }),
    parts,
  );
  const encrypts = include.includes("reasoning.encrypted_content") && store === false;
  return { ...read, groups, encrypts };
}

const fields: ReadonlySet<string> = new Set(
  (
    "model input instructions stream store include max_output_tokens max_tool_calls temperature top_p " +
    "top_logprobs service_tier user safety_identifier prompt_cache_key prompt_cache_retention " +
    "prompt_cache_options metadata reasoning text tools tool_choice parallel_tool_calls truncation"
  ).split(" "),
);

function unknownParameter(param: string): WireError {
  return invalidRequest(`Unknown parameter: '${param}'.`, param, "unknown_parameter");
}

function withoutUndefined(body: JsonRecord): JsonRecord {
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined));
}

/** The messages of chat that an item is. */
function readItem(item: JsonRecord, at: string, model: string): readonly JsonRecord[] {
  const { type = "message", call_id: callId, name, id } = item;
  if (id !== undefined) {
    const message = `Item with id '${stringOf(id)}' not found. Items are not persisted when \`store\` is set to false.`;
    throw invalidRequest(message, `${at}.id`, null);
  }
  switch (type) {
    case "message":
      return [{ role: item["role"], content: readContent(item["content"], at) }];
    case "reasoning":
      checkCiphertext(item, at, model);
      return [];
    case "function_call":
    case "custom_tool_call": {
      checkCallId(callId, at);
      const body = { name, arguments: item["arguments"], input: item["input"] };
      return [{ role: "assistant", content: null, tool_calls: [{ id: callId, function: body }] }];
    }
    case "function_call_output":
    case "custom_tool_call_output":
      checkCallId(callId, at);
      return [{ role: "tool", tool_call_id: callId, content: readContent(item["output"], at) }];
    default:
      throw invalidRequest(`Invalid value: '${stringOf(type)}'.`, `${at}.type`);
  }
}

function checkCallId(id: unknown, at: string): void {
  if (typeof id !== "string" || id === "") throw missing(`${at}.call_id`);
  if (id.length <= 64) return;
  const message = `Invalid '${at}.call_id': string too long. Expected a string with maximum length 64, but got a string with length ${id.length} instead.`;
  throw invalidRequest(message, `${at}.call_id`, "string_above_max_length");
}

function readContent(content: unknown, at: string): unknown {
  if (!Array.isArray(content)) return content;
  return listOf(content).map((each, index) => {
    const part = recordOf(each);
    switch (part["type"]) {
      case "input_text":
      case "output_text":
        return { type: "text", text: part["text"] };
      case "refusal":
        return part;
      case "input_image":
        return { type: "image_url", image_url: { url: part["image_url"] } };
      case "input_file":
        return { type: "file", file: { filename: part["filename"], file_data: part["file_data"] } };
      default: {
        const path = `${at}.content[${index}].type`;
        throw invalidRequest(`Invalid value: '${stringOf(part["type"])}'.`, path);
      }
    }
  });
}

/** The ciphertext of a thought: only its model can read it. */
export function ciphertextOf(model: string, thought: string): string {
  const seal = createHash("sha256")
    .update(JSON.stringify([model, thought]))
    .digest("base64url");
  return `gAAAAAB${seal}.${Buffer.from(thought).toString("base64url")}`;
}

function checkCiphertext(item: JsonRecord, at: string, model: string): void {
  const sealed = stringOf(item["encrypted_content"]);
  const thought = Buffer.from(sealed.split(".")[1] ?? "", "base64url").toString();
  if (sealed === ciphertextOf(model, thought)) return;
  const message = `The encrypted content for item ${at} could not be verified.`;
  throw new WireError(400, { message, code: "invalid_encrypted_content" });
}

function readTools(tool: JsonRecord, groups: Map<string, string>): readonly JsonRecord[] {
  const { type, name, description, parameters, tools } = tool;
  if (type === "namespace") {
    return listOf(tools).flatMap((each) => {
      groups.set(stringOf(recordOf(each)["name"]), stringOf(name));
      return readTools(recordOf(each), groups);
    });
  }
  if (type === "custom") return [{ type, custom: { name, description } }];
  return [{ type, function: { name, description, parameters } }];
}

function readChoice(choice: unknown, hasTools: boolean): unknown {
  if (!isRecord(choice)) return choice === undefined || !hasTools ? undefined : choice;
  const { type, name, mode, tools } = choice;
  if (type !== "allowed_tools") return { type, [stringOf(type)]: { name } };
  const allowed = listOf(tools).map((tool) => readChoice(tool, true));
  return { type, allowed_tools: { mode, tools: allowed } };
}

function readFormat(format: JsonRecord): unknown {
  const { type, ...rest } = format;
  if (type === undefined) return undefined;
  return type === "json_schema" ? { type, json_schema: rest } : { type };
}
