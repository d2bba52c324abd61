/**
 * The checks of a body of `POST /v1/responses`. Only what the gateway reads is checked: clients send
 * new fields and items every month. Source: OpenAI's OpenAPI document, `CreateResponse`.
 */
import { isObject, type JsonObject } from "../../domain/json-object.ts";
import {
  anyObject,
  boolean,
  both,
  type Check,
  integer,
  knownTypes,
  list,
  missing,
  object,
  oneOf,
  tagged,
  text,
  textOrList,
  Violation,
} from "../request/checks.ts";
import { answerSchema, toolWith } from "../request/json-schema.ts";
import {
  effort,
  formatName,
  grammar,
  imageUrl,
  sharedFields,
  toolChoiceOr,
  toolName,
  verbosity,
} from "../request/openai-fields.ts";

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

/** A field that is needed. The others are checked first: what stands in its place is refused. */
function needing(field: string, fields: Check): Check {
  return both(fields, ({ [field]: value }) => (value === undefined ? missing(field) : undefined));
}

const imagePart = needing(
  "image_url",
  object({
    optional: {
      file_id: fileId,
      image_url: imageUrl,
      detail: oneOf(["low", "high", "auto", "original"]),
      ...mark,
    },
  }),
);

const filePart = needing(
  "file_data",
  object({
    optional: {
      file_id: fileId,
      file_url: refused("The gateway fetches no documents; send 'file_data'."),
      file_data: text(),
      filename: text(),
      ...mark,
    },
  }),
);

const parts = knownTypes({
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

const functionTool = toolWith(
  "parameters",
  object({
    required: { name: toolName(128) },
    optional: { description: text(), parameters: anyObject, strict: boolean },
  }),
);

const customTool = object({
  required: { name: toolName(128) },
  optional: {
    description: text(),
    format: tagged("type", {
      text: object(),
      grammar,
    }),
  },
});

const callable = { function: functionTool, custom: customTool };
const namespace = object({
  required: {
    name: toolName(128),
    tools: list(knownTypes(callable), { of: "objects", mayBeEmpty: true }),
  },
  optional: { description: text() },
});
const tools = list(knownTypes({ ...callable, namespace }), { of: "objects", mayBeEmpty: true });

const compaction = refused(
  "Compaction by ciphertext is a feature of OpenAI's servers. Give the provider another name than " +
    "'OpenAI' in the client's settings, so that the client asks for a summary instead.",
);
const compactionItem: Check = (value) => compaction(value)?.insideField("type");

/** A message and a reference may lack their type. */
export function itemType(item: JsonObject): unknown {
  const type = item["type"] ?? undefined;
  if (type !== undefined) return type;
  const isReference = item["role"] === undefined && typeof item["id"] === "string";
  return isReference ? "item_reference" : "message";
}

const item = knownTypes(
  {
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
  },
  itemType,
);

const format = tagged("type", {
  text: object(),
  json_object: object(),
  json_schema: object({
    required: {
      name: formatName,
      schema: answerSchema,
    },
    optional: { description: text(), strict: boolean },
  }),
});

const named = object({ required: { name: text() }, optional: { namespace: text() } });

const toolChoice = toolChoiceOr(
  knownTypes({
    function: named,
    custom: named,
    allowed_tools: object({
      required: {
        mode: oneOf(["auto", "required"]),
        tools: list(knownTypes({ function: named, custom: named }), { of: "objects" }),
      },
    }),
  }),
);

const summary = oneOf(["auto", "concise", "detailed"]);

/** Only true asks for it. */
function background(value: unknown): Violation | undefined {
  return boolean(value) ?? (value === true ? refused("Use 'stream' instead.")(value) : undefined);
}

export const responsesFields: Check = object({
  optional: {
    ...sharedFields,
    background,
    conversation: refused("Send the whole conversation as 'input'."),
    prompt: refused("Send the text of the prompt as 'instructions' or 'input'."),
    moderation: refused("Leave it out; providers moderate by their own rules."),
    previous_response_id: text(),
    input: textOrList(item, { of: "objects", mayBeEmpty: true }),
    instructions: text(),
    stream_options: object({ optional: { include_obfuscation: boolean } }),
    include: list(text(), { of: "strings", mayBeEmpty: true }),
    tools,
    tool_choice: toolChoice,
    max_output_tokens: integer({ minimum: 16 }),
    max_tool_calls: integer(),
    reasoning: object({
      optional: {
        effort,
        summary,
        generate_summary: summary,
      },
    }),
    text: object({ optional: { format, verbosity } }),
    truncation: oneOf(["auto", "disabled"]),
    service_tier: text(),
  },
});
