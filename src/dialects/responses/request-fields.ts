/**
 * The checks of a body of `POST /v1/responses`. Only what the gateway reads is checked: clients send
 * new fields and items every month. Source: OpenAI's OpenAPI document, `CreateResponse`.
 */
import { isObject } from "../../domain/json-object.ts";
import { metadata } from "../openai-chat/schema/chat-fields.ts";
import { checkImageUrl } from "../openai-chat/schema/chat-message.ts";
import { answerSchema, checkParameters } from "../openai-chat/schema/json-schema.ts";
import {
  anyObject,
  boolean,
  type Check,
  decimal,
  integer,
  list,
  missing,
  object,
  oneOf,
  tagged,
  text,
  textOrList,
  textOrObject,
  Violation,
  wrongType,
} from "../request/checks.ts";

/** Objects whose field `type` has a check here; those of other types pass. */
function ofKnownType(checks: Readonly<Record<string, Check>>): Check {
  const known = new Map<unknown, Check>(Object.entries(checks));
  return (value) => {
    if (!isObject(value)) return wrongType("an object", value);
    const { type } = value;
    if (type === undefined || type === null) return missing("type");
    if (typeof type !== "string") return wrongType("a string", type).insideField("type");
    return known.get(type)?.(value);
  };
}

/** What no upstream here could resolve, and what to send in its place. */
function refused(advice: string): Check {
  return () =>
    new Violation(
      "unsupported_parameter",
      (path) => `Unsupported parameter: '${path}' is not supported by this gateway. ${advice}`,
    );
}

const fileId = refused("The gateway stores no files; send the content itself.");
const mark = { prompt_cache_breakpoint: object() };

const textPart = object({ required: { text: text() }, optional: mark });

const imageFields = object({
  optional: {
    file_id: fileId,
    image_url: checkImageUrl,
    detail: oneOf(["low", "high", "auto", "original"]),
    ...mark,
  },
});

function imagePart(value: unknown): Violation | undefined {
  const violation = imageFields(value);
  if (violation !== undefined || !isObject(value)) return violation;
  return value["image_url"] === undefined ? missing("image_url") : undefined;
}

const fileFields = object({
  optional: {
    file_id: fileId,
    file_url: refused("The gateway fetches no documents; send 'file_data'."),
    file_data: text(),
    filename: text(),
    ...mark,
  },
});

function filePart(value: unknown): Violation | undefined {
  const violation = fileFields(value);
  if (violation !== undefined || !isObject(value)) return violation;
  return value["file_data"] === undefined ? missing("file_data") : undefined;
}

const parts = ofKnownType({
  input_text: textPart,
  output_text: textPart,
  text: textPart,
  refusal: object({ required: { refusal: text() }, optional: mark }),
  input_image: imagePart,
  input_file: filePart,
});

const content = textOrList(parts, { of: "objects", mayBeEmpty: true });

const message = object({
  required: { role: oneOf(["user", "assistant", "system", "developer"]), content },
  optional: { phase: text() },
});

const thoughts = list(object({ optional: { text: text() } }), { of: "objects", mayBeEmpty: true });
const output = object({ required: { call_id: text(), output: content } });

/** One without a call was given the only one that it can be of, if there is one. */
function functionOutput(value: unknown): Violation | undefined {
  const isUnnamed = isObject(value) && (value["call_id"] ?? undefined) === undefined;
  return isUnnamed ? missing("call_id", unnamedAdvice) : output(value);
}

const unnamedAdvice =
  " It may be left out only after exactly one 'function_call' of 'input' without an output.";

const toolName = text({ mayBeEmpty: false, maximumLength: 128, pattern: /^[a-zA-Z0-9_.-]+$/ });

const functionFields = object({
  required: { name: toolName },
  optional: { description: text(), parameters: anyObject, strict: boolean },
});

function functionTool(value: unknown): Violation | undefined {
  const violation = functionFields(value);
  if (violation !== undefined || !isObject(value)) return violation;
  return checkParameters(value["parameters"], String(value["name"]))?.insideField("parameters");
}

const customTool = object({
  required: { name: toolName },
  optional: {
    description: text(),
    format: tagged("type", {
      text: object(),
      grammar: object({ required: { definition: text(), syntax: oneOf(["lark", "regex"]) } }),
    }),
  },
});

const callable = { function: functionTool, custom: customTool };
const namespace = object({
  required: {
    name: toolName,
    tools: list(ofKnownType(callable), { of: "objects", mayBeEmpty: true }),
  },
  optional: { description: text() },
});
const tools = list(ofKnownType({ ...callable, namespace }), { of: "objects", mayBeEmpty: true });

const compaction = refused(
  "Compaction by ciphertext is a feature of OpenAI's servers. Give the provider another name than " +
    "'OpenAI' in the client's settings, so that the client asks for a summary instead.",
);
const compactionItem: Check = (value) => compaction(value)?.insideField("type");

const items = new Map<unknown, Check>(
  Object.entries({
    message,
    function_call: object({ required: { call_id: text(), name: text(), arguments: text() } }),
    custom_tool_call: object({ required: { call_id: text(), name: text(), input: text() } }),
    function_call_output: functionOutput,
    custom_tool_call_output: output,
    reasoning: object({
      optional: { summary: thoughts, content: thoughts, encrypted_content: text() },
    }),
    item_reference: object({ required: { id: text() } }),
    additional_tools: object({ optional: { tools } }),
    compaction: compactionItem,
    compaction_trigger: compactionItem,
  } satisfies Readonly<Record<string, Check>>),
);

/** A message and a reference may lack their type. */
export function itemType(item: Readonly<Record<string, unknown>>): unknown {
  const type = item["type"] ?? undefined;
  if (type !== undefined) return type;
  const isReference = item["role"] === undefined && typeof item["id"] === "string";
  return isReference ? "item_reference" : "message";
}

function item(value: unknown): Violation | undefined {
  if (!isObject(value)) return wrongType("an object", value);
  const type = itemType(value);
  if (typeof type !== "string") return wrongType("a string", type).insideField("type");
  return items.get(type)?.(value);
}

const format = tagged("type", {
  text: object(),
  json_object: object(),
  json_schema: object({
    required: {
      name: text({ mayBeEmpty: false, maximumLength: 64, pattern: /^[a-zA-Z0-9_-]+$/ }),
      schema: answerSchema,
    },
    optional: { description: text(), strict: boolean },
  }),
});

const named = object({ required: { name: text() }, optional: { namespace: text() } });

const toolChoice = textOrObject({
  text: oneOf(["none", "auto", "required"]),
  object: ofKnownType({
    function: named,
    custom: named,
    allowed_tools: object({
      required: {
        mode: oneOf(["auto", "required"]),
        tools: list(ofKnownType({ function: named, custom: named }), { of: "objects" }),
      },
    }),
  }),
  expected: "one of one of 'none', 'auto', or 'required' or object",
});

const summary = oneOf(["auto", "concise", "detailed"]);

/** Only true asks for it. */
function background(value: unknown): Violation | undefined {
  return boolean(value) ?? (value === true ? refused("Use 'stream' instead.")(value) : undefined);
}

export const responsesFields: Check = object({
  optional: {
    background,
    conversation: refused("Send the whole conversation as 'input'."),
    prompt: refused("Send the text of the prompt as 'instructions' or 'input'."),
    moderation: refused("Leave it out; providers moderate by their own rules."),
    previous_response_id: text(),
    input: textOrList(item, { of: "objects", mayBeEmpty: true }),
    instructions: text(),
    stream: boolean,
    stream_options: object({ optional: { include_obfuscation: boolean } }),
    store: boolean,
    include: list(text(), { of: "strings", mayBeEmpty: true }),
    tools,
    tool_choice: toolChoice,
    parallel_tool_calls: boolean,
    max_output_tokens: integer({ minimum: 16 }),
    max_tool_calls: integer(),
    temperature: decimal({ minimum: 0, maximum: 2 }),
    top_p: decimal({ minimum: 0, maximum: 1 }),
    top_logprobs: integer({ minimum: 0, maximum: 20 }),
    reasoning: object({
      optional: {
        effort: oneOf(["none", "minimal", "low", "medium", "high", "xhigh", "max"]),
        summary,
        generate_summary: summary,
      },
    }),
    text: object({ optional: { format, verbosity: oneOf(["low", "medium", "high"]) } }),
    truncation: oneOf(["auto", "disabled"]),
    metadata,
    service_tier: text(),
    user: text({ maximumLength: 64 }),
    safety_identifier: text({ maximumLength: 64 }),
    prompt_cache_key: text(),
  },
});
