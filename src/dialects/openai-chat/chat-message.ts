/** The messages of a chat request: section "Messages" of OpenAI's wire format. */
import { isObject, type JsonObject } from "../../domain/json-object.ts";
import {
  type Check,
  emptyArray,
  list,
  missing,
  object,
  oneOf,
  tagged,
  text,
  textOrList,
  Violation,
} from "../request/checks.ts";
import { imageUrl } from "../request/openai-fields.ts";
import { cacheControl } from "./chat-tools.ts";

const cacheBreakpoint = object({ required: { mode: oneOf(["explicit"]) } });

function part(required: Record<string, Check>): Check {
  return object({
    required,
    optional: { ...cacheControl, prompt_cache_breakpoint: cacheBreakpoint },
  });
}

export const textPart = part({ text: text() });
const refusalPart = part({ refusal: text() });
export const imagePart = part({
  image_url: object({
    required: { url: imageUrl },
    optional: { detail: oneOf(["auto", "low", "high", "original"]) },
  }),
});
const audioPart = part({
  input_audio: object({ required: { data: text(), format: oneOf(["wav", "mp3"]) } }),
});
const filePart = part({
  file: object({ optional: { filename: text(), file_data: text(), file_id: text() } }),
});

const textParts = tagged("type", { text: textPart });
const userParts = tagged("type", {
  text: textPart,
  image_url: imagePart,
  input_audio: audioPart,
  file: filePart,
});
/** OpenAI accepts text only; other servers, and the models themselves, accept these too. */
const toolParts = tagged("type", { text: textPart, image_url: imagePart, file: filePart });
const assistantParts = tagged("type", { text: textPart, refusal: refusalPart });

/** Also the form of a prediction's content. */
export const textContent = textOrList(textParts, { of: "objects" });

const toolCall = tagged("type", {
  function: object({
    required: {
      id: text(),
      function: object({ required: { name: text(), arguments: text() } }),
    },
  }),
  custom: object({
    required: { id: text(), custom: object({ required: { name: text(), input: text() } }) },
  }),
});

/** `checkAssistant` decides whether the content may be missing. */
const assistantFields = object({
  optional: {
    ...cacheControl,
    content: textOrList(assistantParts, { of: "objects", mayBeEmpty: true }),
    name: text(),
    refusal: text(),
    audio: object({ required: { id: text() } }),
    // Clients send back the empty list that some servers answer with.
    tool_calls: list(toolCall, { of: "objects", maximumLength: 128, mayBeEmpty: true }),
    function_call: object({ required: { name: text(), arguments: text() } }),
  },
});

const instructions = object({
  required: { content: orNullContent(textContent) },
  optional: { ...cacheControl, name: text() },
});

/** In the order of OpenAI's list of supported roles. */
export const chatMessage = tagged("role", {
  system: instructions,
  assistant: checkAssistant,
  user: object({
    required: { content: orNullContent(textOrList(userParts, { of: "objects" })) },
    optional: { ...cacheControl, name: text() },
  }),
  function: object({ required: { name: text(), content: orNull(text()) } }),
  tool: object({
    required: {
      content: orNullContent(textOrList(toolParts, { of: "objects" })),
      tool_call_id: text(),
    },
    optional: cacheControl,
  }),
  developer: instructions,
});

function checkAssistant(value: unknown): Violation | undefined {
  const content = isObject(value) ? value["content"] : undefined;
  const violation = assistantFields(value);
  if (violation !== undefined || !isObject(value)) return violation;
  if (typeof content === "string" || mayLackContent(value)) return undefined;
  if (content === undefined) return missing("content");
  if (content === null) return nullContent().insideField("content");
  const isEmpty = Array.isArray(content) && content.length === 0;
  return isEmpty ? emptyArray().insideField("content") : undefined;
}

/** Whether an assistant message may lack content: it has a call, a refusal, or audio. */
function mayLackContent(message: JsonObject): boolean {
  const calls = message["tool_calls"];
  return (
    (Array.isArray(calls) && calls.length > 0) ||
    isObject(message["function_call"]) ||
    isObject(message["audio"]) ||
    (typeof message["refusal"] === "string" && message["refusal"].length > 0)
  );
}

function orNullContent(check: Check): Check {
  return (value) => (value === null ? nullContent() : check(value));
}

function orNull(check: Check): Check {
  return (value) => (value === null ? undefined : check(value));
}

/** OpenAI detects this one in a later layer, which writes paths with a dot before the index. */
function nullContent(): Violation {
  return new Violation(
    "invalid_body",
    () => "Invalid value for 'content': expected a string, got null.",
    (path) => path.replaceAll("[", ".["),
  );
}
