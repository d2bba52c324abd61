import type { Attachment, Turn } from "../answer/prompt.ts";
import { isList, isRecord, listOf, recordOf, stringOf, type JsonRecord } from "../read-json.ts";
import { invalidRequest, wrongType } from "./wire-error.ts";

const roles: Readonly<Record<string, Turn["role"]>> = {
  developer: "system",
  system: "system",
  user: "user",
  assistant: "assistant",
  tool: "tool",
  function: "tool",
};

/** The conversation of a chat request. Throws `WireError` if OpenAI would refuse it. */
export function readMessages(messages: unknown): Turn[] {
  if (messages === undefined || messages === null) {
    const message = "Missing required parameter: 'messages'.";
    throw invalidRequest(message, "messages", "missing_required_parameter");
  }
  if (!isList(messages)) throw wrongType("messages", "an array of objects", messages);
  if (messages.length === 0) {
    const message =
      "Invalid 'messages': empty array. Expected an array with minimum length 1, " +
      "but got an empty array instead.";
    throw invalidRequest(message, "messages", "empty_array");
  }
  const callNames = new Map<string, string>();
  return messages.map((message, index) => readMessage(message, `messages[${index}]`, callNames));
}

function readMessage(message: unknown, path: string, callNames: Map<string, string>): Turn {
  if (!isRecord(message)) throw wrongType(path, "an object", message);
  const role = roles[stringOf(message["role"])];
  if (role === undefined) {
    const supported = Object.keys(roles).map((name) => `'${name}'`);
    const list = `${supported.slice(0, -1).join(", ")}, and ${supported.at(-1) ?? ""}`;
    const text = `Invalid value: '${stringOf(message["role"])}'. Supported values are: ${list}.`;
    throw invalidRequest(text, `${path}.role`, "invalid_value");
  }
  const toolCalls = readToolCalls(message, callNames);
  const content = readContent(message["content"], `${path}.content`);
  if (message["content"] === undefined && role !== "assistant") {
    const text = `Missing required parameter: '${path}.content'.`;
    throw invalidRequest(text, `${path}.content`, "missing_required_parameter");
  }
  const callId = stringOf(message["tool_call_id"]);
  const name = stringOf(message["name"]) || callNames.get(callId);
  return { role, name, toolCalls, ...content };
}

function readToolCalls(message: JsonRecord, callNames: Map<string, string>): Turn["toolCalls"] {
  const calls = listOf(message["tool_calls"]).map((call) => {
    const { id, function: called, custom } = recordOf(call);
    const body = recordOf(called ?? custom);
    const name = stringOf(body["name"]);
    callNames.set(stringOf(id), name);
    return { name, input: stringOf(body["arguments"] ?? body["input"]) };
  });
  const legacy = message["function_call"];
  if (!isRecord(legacy)) return calls;
  return [...calls, { name: stringOf(legacy["name"]), input: stringOf(legacy["arguments"]) }];
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
