/** Every field of a Messages request that is read; other fields, and blocks of new types, pass. */
import { GatewayError } from "../../domain/errors/gateway-error.ts";
import { isObject, type JsonObject, textOf } from "../../domain/json-fields.ts";
import { isServerTool } from "../../wires/messages/read-request.ts";
import {
  anyObject,
  boolean,
  type Check,
  clip,
  decimal,
  integer,
  knownTypes,
  list,
  object,
  oneOf,
  tagged,
  text,
  textOrList,
  Violation,
} from "../request/checks.ts";
import { answerSchema, toolWith } from "../request/json-schema.ts";
import { toolName } from "../request/openai-fields.ts";
import { requireObject } from "../request/parse-json.ts";

/**
 * Checks a parsed body of `POST /v1/messages`, whose depth must be bounded already. It loses its null
 * fields. Throws a `GatewayError` of status 400.
 */
export function checkMessagesRequest(body: unknown): JsonObject {
  return checked(body, messageFields);
}

/** The same for `POST /v1/messages/count_tokens`, which has no `max_tokens`. */
export function checkCountRequest(body: unknown): JsonObject {
  return checked(body, countFields);
}

function checked(body: unknown, fields: Check): JsonObject {
  const request = requireObject(body);
  refuseState(request);
  const violation = fields(request);
  if (violation !== undefined) throw violation.toError();
  refuseServerTools(request);
  return request;
}

/** Fields without which the model would get another request than the caller means. */
function refuseState(request: JsonObject): void {
  const { thread, safeguards } = request;
  if (thread !== undefined && thread !== null) {
    // Clients know the code, and send the whole conversation then.
    throw new GatewayError("thread_unsupported", {
      message: "Message threads are not supported. Send the whole conversation in `messages`.",
      param: "thread",
    });
  }
  if (safeguards === undefined || safeguards === null) return;
  throw new GatewayError("invalid_value", {
    message: "Safeguards are not supported here. Send the request without this field.",
    param: "safeguards",
  });
}

/** Tools of the provider are left out, unless the answer depends on one. */
function refuseServerTools(request: JsonObject): void {
  const { tools, tool_choice: choice } = request;
  if (!Array.isArray(tools) || tools.length === 0) return;
  const offered = tools.filter(isObject);
  const own = offered.filter((tool) => !isServerTool(tool));
  if (own.length === 0) {
    throw new GatewayError("invalid_value", {
      message:
        `Tools that the provider runs are not served here, such as '${typeOf(offered[0])}'. Send at ` +
        "least one tool with an input_schema.",
      param: "tools",
    });
  }
  const name = isObject(choice) && choice["type"] === "tool" ? textOf(choice["name"]) : undefined;
  if (name === undefined || own.some((tool) => tool["name"] === name)) return;
  const forced = offered.find((tool) => tool["name"] === name);
  throw new GatewayError("invalid_value", {
    message:
      forced === undefined
        ? `Tool '${clip(name)}' not found in provided tools`
        : `Tools that the provider runs are not served here, such as '${typeOf(forced)}'.`,
    param: "tool_choice.name",
  });
}

function typeOf(tool: JsonObject | undefined): string {
  return clip(String(tool?.["type"]));
}

const blocks = { of: "objects", mayBeEmpty: true };

const marked = {
  cache_control: object({
    required: { type: oneOf(["ephemeral"]) },
    optional: { ttl: text() },
  }),
};

/** `advice`: what to send instead. */
function refused(advice: string): Check {
  return () =>
    new Violation(
      "invalid_value",
      (path) => `Invalid '${path}': this source is not read. ${advice}`,
    );
}

const base64 = object({ required: { media_type: text({ mayBeEmpty: false }), data: text() } });
const httpUrl = text({ pattern: /^(?:https?:\/\/|data:)/i });

const imageSource = tagged("type", {
  base64,
  url: object({ required: { url: httpUrl } }),
  file: refused("Send the image as base64 or by its address."),
});

const blockText = object({ required: { text: text() }, optional: marked });
const image = object({ required: { source: imageSource }, optional: marked });

const document = object({
  required: {
    source: tagged("type", {
      base64,
      text: object({ required: { data: text() } }),
      content: object({
        required: { content: textOrList(knownTypes({ text: blockText, image }), blocks) },
      }),
      url: refused("Send the document as base64, or its text."),
      file: refused("Send the document as base64, or its text."),
    }),
  },
  optional: { ...marked, title: text(), context: text() },
});

const material = { text: blockText, image, document };

const block = knownTypes({
  ...material,
  thinking: object({ required: { thinking: text() }, optional: { signature: text() } }),
  redacted_thinking: object({ required: { data: text() } }),
  tool_use: object({
    required: { id: text(), name: text({ mayBeEmpty: false }) },
    optional: { ...marked, input: anyObject },
  }),
  tool_result: object({
    required: { tool_use_id: text() },
    optional: {
      ...marked,
      content: textOrList(knownTypes(material), blocks),
      is_error: boolean,
    },
  }),
});

const message = object({
  required: {
    role: oneOf(["user", "assistant", "system"]),
    content: textOrList(block, blocks),
  },
});

const customTool = toolWith(
  "input_schema",
  object({
    required: { name: toolName(128), input_schema: anyObject },
    optional: { ...marked, description: text(), strict: boolean },
  }),
);

function tool(value: unknown): Violation | undefined {
  return isObject(value) && isServerTool(value) ? undefined : customTool(value);
}

const format = tagged("type", { json_schema: object({ required: { schema: answerSchema } }) });

/** Anthropic's API bounds the list alone, at 100,000; here the number of values is bounded too. */
const messages = list(message, { of: "objects", maximumLength: 100_000 });

const optional = {
  ...marked,
  system: textOrList(knownTypes({ text: blockText }), blocks),
  tools: list(tool, blocks),
  tool_choice: tagged("type", {
    auto: object(),
    any: object(),
    none: object(),
    tool: object({ required: { name: text({ mayBeEmpty: false }) } }),
  }),
  output_config: object({ optional: { effort: text(), format } }),
  output_format: format,
  thinking: object({
    required: { type: text() },
    optional: { budget_tokens: integer({ minimum: 1 }), display: text() },
  }),
  stream: boolean,
  stop_sequences: list(text(), { of: "strings", mayBeEmpty: true }),
  temperature: decimal({ minimum: 0, maximum: 1 }),
  top_p: decimal({ minimum: 0, maximum: 1 }),
  top_k: integer({ minimum: 0 }),
  metadata: object({ optional: { user_id: text() } }),
  service_tier: text(),
};

const model = text({ mayBeEmpty: false });

const messageFields = object({ required: { model, max_tokens: maxTokens, messages }, optional });
const countFields = object({ required: { model, messages }, optional });

const oneToken = integer({ minimum: 1 });

function maxTokens(value: unknown): Violation | undefined {
  if (value !== 0) return oneToken(value);
  return new Violation(
    "integer_below_min_value",
    () =>
      "0 would only warm the provider's prompt cache, which is not served here. Send at least 1.",
  );
}
