import {
  type Block,
  isResultContent,
  type ToolCallBlock,
  type ToolKind,
  type Turn,
} from "../../domain/chat/conversation.ts";
import { isObject, type JsonObject, nonEmpty, objectOf, textOf } from "../../domain/json-fields.ts";
import { fieldNames, fieldsBeyond, objectsIn } from "../fields.ts";
import { fieldsBeside } from "./cache-marks.ts";

/** Reads a message, which must be checked. `at` is its path. */
export function readMessage(message: JsonObject, at: string): Turn {
  const { role } = message;
  if (role === "tool" || role === "function") return readResult(message, role, at);
  const isModel = role === "assistant";
  const blocks: Block[] = [];
  const details = isModel ? readThoughts(message, at, blocks) : undefined;
  for (const block of contentOf(message, at)) blocks.push(block);
  if (isModel) readBeside(message, at, blocks);
  const known = isModel ? assistantFields : messageFields;
  const { cacheMark, extra } = fieldsBeside(message, known, details);
  return {
    role: isModel || role === "system" || role === "developer" ? role : "user",
    blocks,
    isPlain: isPlainContent(message),
    name: textOf(message["name"]),
    cacheMark,
    extra,
    at,
  };
}

const messageFields = fieldNames("role content name");

function readResult(message: JsonObject, role: "tool" | "function", at: string): Turn {
  const callId = role === "tool" ? (textOf(message["tool_call_id"]) ?? "") : undefined;
  const name = textOf(message["name"]);
  const content = contentOf(message, at).filter(isResultContent);
  const isPlain = isPlainContent(message);
  const { cacheMark, extra } = fieldsBeside(message, messageFields, "tool_call_id");
  return {
    role: "user",
    blocks: [{ type: "tool-result", callId, name, content, isPlain, at }],
    cacheMark,
    // OpenAI knows no name beside an id, so it was not checked.
    extra: name === undefined ? withName(message, extra) : extra,
    at,
  };
}

function withName({ name }: JsonObject, extra: Turn["extra"]): Turn["extra"] {
  return name === undefined ? extra : { ...extra, name };
}

/** What a model's message has beside its content. */
function readBeside(message: JsonObject, at: string, blocks: Block[]): void {
  const refusal = textOf(message["refusal"]);
  if (refusal !== undefined) {
    blocks.push({ type: "refusal", text: refusal, isBeside: true, at: `${at}.refusal` });
  }
  const spoken = objectOf(message["audio"]);
  if (spoken !== undefined) {
    const id = textOf(spoken["id"]) ?? "";
    blocks.push({ type: "spoken", id, inner: fieldsBeyond(spoken, idField), at: `${at}.audio` });
  }
  objectsIn(message["tool_calls"]).forEach((call, index) => {
    const kind: ToolKind = call["type"] === "custom" ? "custom" : "function";
    blocks.push(readCall(call, kind, `${at}.tool_calls[${index}]`));
  });
  const old = objectOf(message["function_call"]);
  if (old === undefined) return;
  const call = { id: undefined, function: old };
  blocks.push(readCall(call, "function", `${at}.function_call`));
}

const assistantFields = fieldNames(
  "role content name refusal audio tool_calls function_call reasoning_content",
);
const idField = fieldNames("id");

function isPlainContent({ content }: JsonObject): true | undefined {
  return typeof content === "string" ? true : undefined;
}

function contentOf(message: JsonObject, at: string): readonly Block[] {
  const { content } = message;
  if (typeof content === "string") return [{ type: "text", text: content, at: `${at}.content` }];
  const blocks: Block[] = [];
  for (const part of objectsIn(content)) {
    blocks.push(readPart(part, `${at}.content[${blocks.length}]`));
  }
  return blocks;
}

function readPart(part: JsonObject, at: string): Block {
  const type = textOf(part["type"]) ?? "";
  const { cacheMark, extra } = fieldsBeside(part, typeField, type);
  const own = objectOf(part[type]) ?? {};
  switch (type) {
    case "text":
    case "refusal":
      return { type, text: textOf(part[type]) ?? "", cacheMark, extra, at };
    case "image_url": {
      const url = textOf(own["url"]) ?? "";
      const detail = textOf(own["detail"]);
      const inner = fieldsBeyond(own, imageFields);
      return { type: "image", url, detail, cacheMark, extra, inner, at };
    }
    case "input_audio": {
      const data = textOf(own["data"]) ?? "";
      const format = textOf(own["format"]) ?? "";
      const inner = fieldsBeyond(own, audioFields);
      return { type: "audio", data, format, cacheMark, extra, inner, at };
    }
    case "file": {
      const data = textOf(own["file_data"]);
      const filename = textOf(own["filename"]);
      const inner = fieldsBeyond(own, fileFields);
      return { type: "document", data, filename, cacheMark, extra, inner, at };
    }
    default:
      return { type: "foreign", value: part, at };
  }
}

const typeField = fieldNames("type");
const imageFields = fieldNames("url detail");
const audioFields = fieldNames("data format");
/** `file_id` stays with the fields without a name: no upstream of another wire has it. */
const fileFields = fieldNames("file_data filename");

/**
 * Thoughts that a caller sends back: `reasoning_content` as this gateway's answers have it, and
 * signed ones in OpenRouter's `reasoning_details` or, as LiteLLM's callers keep them,
 * `thinking_blocks`. Returns which of the two was read.
 */
function readThoughts(message: JsonObject, at: string, blocks: Block[]): string | undefined {
  const text = textOf(message["reasoning_content"]);
  if (text !== undefined) {
    blocks.push({ type: "reasoning", text, at: `${at}.reasoning_content` });
  }
  const field = isDetails(message["reasoning_details"])
    ? "reasoning_details"
    : isDetails(message["thinking_blocks"])
      ? "thinking_blocks"
      : undefined;
  if (field === undefined) return undefined;
  objectsIn(message[field]).forEach((detail, index) =>
    blocks.push(readDetail(detail, `${at}.${field}[${index}]`)),
  );
  return field;
}

function isDetails(value: unknown): boolean {
  return Array.isArray(value) && value.length > 0 && value.every(isObject);
}

/** An unsigned thought is in `reasoning_content`, too, so it is no thought of its own. */
function readDetail(detail: JsonObject, at: string): Block {
  const type = detail["type"];
  if (type === "reasoning.text" || type === "thinking") {
    const opaque = nonEmpty(detail["signature"]);
    // Clients omit an empty text, but thoughts without visible text are signed too.
    const text = textOf(detail["text"]) ?? textOf(detail["thinking"]) ?? "";
    const extra = fieldsBeyond(detail, signedFields);
    if (opaque !== undefined) return { type: "reasoning", text, opaque, extra, at };
  }
  if (type === "reasoning.encrypted" || type === "redacted_thinking") {
    const opaque = nonEmpty(detail["data"]);
    const extra = fieldsBeyond(detail, dataField);
    if (opaque !== undefined) {
      return { type: "reasoning", text: "", opaque, isRedacted: true, extra, at };
    }
  }
  return { type: "foreign", value: detail, at };
}

/** The type stays: it says which of the fields a thought came in. */
const signedFields = fieldNames("text thinking signature");
const dataField = fieldNames("data");

/** The stream's `index`, which SDKs echo, is no field of a request. */
const callFields = fieldNames("id type index");

function readCall(call: JsonObject, kind: ToolKind, at: string): ToolCallBlock {
  const body = objectOf(call[kind]) ?? {};
  const content = kind === "custom" ? "input" : "arguments";
  return {
    type: "tool-call",
    id: textOf(call["id"]),
    kind,
    name: textOf(body["name"]) ?? "",
    arguments: textOf(body[content]) ?? "",
    extra: fieldsBeyond(call, callFields, kind),
    inner: fieldsBeyond(body, nameField, content),
    at,
  };
}

const nameField = fieldNames("name");
