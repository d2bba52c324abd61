import { expect, test } from "bun:test";
import fc from "fast-check";
import { type JsonObject, parseObject } from "../../domain/json-fields.ts";
import { readChatRequest } from "./read-request.ts";
import type { RequestRules } from "./write-request.ts";
import { writeChatRequest } from "./write-request.ts";

/** Has every field. */
class EveryField extends Set<string> {
  override has(): boolean {
    return true;
  }
}

const every = new EveryField();

/** Forwards all that there is, to a server that wrote all calls. */
const rules: RequestRules = {
  fields: {
    root: every,
    message: every,
    part: every,
    spoken: every,
    call: every,
    callBody: every,
    media: every,
  },
  instructionRole: "as_sent",
  flattenTextParts: false,
  dropFields: [],
  maxTokensField: "as_sent",
  streamUsage: false,
};

const text = fc.oneof(fc.string(), fc.constantFrom("", " ", "null", "\ud800", "__proto__"));
const name = fc.string({ minLength: 1, maxLength: 8 });
const maybe = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { nil: undefined });

/** Fields that nobody knows, also with names that have a meaning elsewhere. */
const extra: fc.Arbitrary<JsonObject> = fc.oneof(
  { weight: 3, arbitrary: fc.constant({}) },
  fc.dictionary(
    fc.constantFrom("x", "at", "blocks", "isPlain", "extra_content", "toString", "is_error"),
    fc.jsonValue({ maxDepth: 2 }),
    { maxKeys: 3 },
  ),
);

const control = fc.record(
  {
    type: fc.constantFrom("ephemeral", "other"),
    ttl: fc.constantFrom("5m", "1h", "2h"),
    scope: text,
  },
  { requiredKeys: [] },
);
const breakpoint = fc.record({ mode: fc.constant("explicit"), ttl: maybe(text) });
const marks = fc.oneof(
  { weight: 3, arbitrary: fc.constant({}) },
  fc.record({ cache_control: control, prompt_cache_breakpoint: breakpoint }, { requiredKeys: [] }),
);

/** An object with these fields, of which undefined ones are not there, and with others. */
function objectWith(fields: Record<string, fc.Arbitrary<unknown>>): fc.Arbitrary<JsonObject> {
  return fc
    .tuple(fc.record(fields), extra, marks)
    .map(([known, unknown, marked]) => ({ ...unknown, ...marked, ...known }));
}

/** The same without marks, where they have no meaning. */
function bare(fields: Record<string, fc.Arbitrary<unknown>>): fc.Arbitrary<JsonObject> {
  return fc.tuple(fc.record(fields), extra).map(([known, unknown]) => ({ ...unknown, ...known }));
}

const textPart = objectWith({ type: fc.constant("text"), text });
const imagePart = objectWith({
  type: fc.constant("image_url"),
  image_url: bare({ url: text, detail: maybe(fc.constantFrom("low", "high")) }),
});
const filePart = objectWith({
  type: fc.constant("file"),
  file: bare({
    file_data: fc.constantFrom(undefined, "data:text/plain;base64,YQ==", "YQ=="),
    filename: maybe(text),
    file_id: maybe(text),
  }),
});
const audioPart = objectWith({
  type: fc.constant("input_audio"),
  input_audio: bare({ data: text, format: fc.constantFrom("wav", "mp3") }),
});
const refusalPart = objectWith({ type: fc.constant("refusal"), refusal: text });

const contentOf = (...parts: readonly fc.Arbitrary<JsonObject>[]): fc.Arbitrary<unknown> =>
  fc.oneof(text, fc.array(fc.oneof(...parts), { minLength: 1, maxLength: 3 }));

const call = fc.oneof(
  bare({
    id: name,
    type: fc.constant("function"),
    function: bare({ name, arguments: text }),
  }),
  bare({ id: name, type: fc.constant("custom"), custom: bare({ name, input: text }) }),
);
const detail = fc.oneof(
  bare({
    type: fc.constant("reasoning.text"),
    text,
    signature: maybe(text),
    format: text,
    index: fc.nat(),
  }),
  bare({ type: fc.constantFrom("reasoning.encrypted", "reasoning.summary"), data: maybe(text) }),
);
const thinking = fc.oneof(
  bare({ type: fc.constant("thinking"), thinking: text, signature: maybe(text) }),
  bare({ type: fc.constant("redacted_thinking"), data: text }),
);
const list = <Value>(value: fc.Arbitrary<Value>) =>
  maybe(fc.array(value, { minLength: 1, maxLength: 3 }));

const message = fc.oneof(
  objectWith({
    role: fc.constantFrom("system", "developer"),
    content: contentOf(textPart),
    name: maybe(text),
  }),
  objectWith({
    role: fc.constant("user"),
    content: contentOf(textPart, imagePart, filePart, audioPart),
    name: maybe(text),
  }),
  objectWith({
    role: fc.constant("tool"),
    tool_call_id: text,
    content: contentOf(textPart, imagePart, filePart),
    name: maybe(fc.oneof(text, fc.constant(7))),
  }),
  objectWith({
    role: fc.constant("function"),
    name: text,
    content: fc.oneof(text, fc.constant(null)),
  }),
  objectWith({
    role: fc.constant("assistant"),
    // An empty text is sent as none, as ever.
    content: contentOf(textPart, refusalPart).map((content) => (content === "" ? null : content)),
    name: maybe(text),
    refusal: maybe(text),
    audio: maybe(bare({ id: text })),
    tool_calls: list(call),
    function_call: maybe(bare({ name, arguments: text })),
    reasoning_content: maybe(text),
    reasoning_details: list(detail),
    thinking_blocks: list(thinking),
  }),
);

const parameters = fc.constant({ type: "object", properties: {} });
const definition = objectWith({
  name,
  description: maybe(text),
  parameters: maybe(parameters),
  strict: maybe(fc.boolean()),
});
const grammar = bare({ syntax: fc.constantFrom("lark", "regex"), definition: text });
const tool = fc.oneof(
  objectWith({ type: fc.constant("function"), function: definition }),
  objectWith({
    type: fc.constant("custom"),
    custom: bare({
      name,
      description: maybe(text),
      format: maybe(
        fc.oneof(
          bare({ type: fc.constant("text") }),
          bare({ type: fc.constant("grammar"), grammar }),
        ),
      ),
    }),
  }),
);
const offer = fc.oneof(
  fc.record({ type: fc.constant("function"), function: fc.record({ name }) }),
  fc.record({ type: fc.constant("custom"), custom: fc.record({ name }) }),
);
const tools = fc.record({
  tools: fc.array(tool, { minLength: 1, maxLength: 3 }),
  parallel_tool_calls: maybe(fc.boolean()),
  tool_choice: fc.oneof(
    fc.constantFrom(undefined, "auto", "none", "required"),
    offer,
    fc.record({
      type: fc.constant("allowed_tools"),
      allowed_tools: fc.record({
        mode: fc.constantFrom("auto", "required"),
        tools: fc.array(offer, { maxLength: 3 }),
      }),
    }),
  ),
});
const functions = fc.record({
  functions: fc.array(definition, { minLength: 1, maxLength: 2 }),
  function_call: fc.oneof(fc.constantFrom(undefined, "auto", "none"), fc.record({ name })),
});
const offers = fc.oneof(
  fc.constant({}),
  tools,
  functions,
  fc.tuple(tools, functions).map(([one, other]) => ({ ...one, ...other })),
);

const format = fc.oneof(
  bare({ type: fc.constantFrom("text", "json_object") }),
  bare({
    type: fc.constant("json_schema"),
    json_schema: bare({
      name,
      description: maybe(text),
      schema: maybe(parameters),
      strict: maybe(fc.boolean()),
    }),
  }),
);
const number = fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => value + 0);

const root = fc.record({
  model: name,
  messages: fc.array(message, { minLength: 1, maxLength: 5 }),
  stream: fc.constantFrom(undefined, true),
  max_tokens: maybe(fc.nat()),
  max_completion_tokens: maybe(fc.nat()),
  temperature: maybe(number),
  top_p: maybe(number),
  top_k: maybe(fc.oneof(number, text, fc.constant(null))),
  n: maybe(fc.nat()),
  stop: maybe(fc.array(text, { maxLength: 4 })),
  presence_penalty: maybe(number),
  frequency_penalty: maybe(number),
  logit_bias: maybe(fc.dictionary(fc.nat().map(String), fc.integer())),
  logprobs: maybe(fc.boolean()),
  top_logprobs: maybe(fc.nat()),
  seed: maybe(fc.integer()),
  verbosity: maybe(text),
  service_tier: maybe(text),
  user: maybe(text),
  safety_identifier: maybe(text),
  prompt_cache_key: maybe(text),
  metadata: maybe(fc.dictionary(fc.constantFrom("a", "toString"), text)),
  reasoning_effort: maybe(text),
  response_format: maybe(format),
  modalities: maybe(fc.constant(["text"])),
});
const body = fc
  .tuple(root, offers, extra)
  .map(([known, offered, unknown]) => JSON.stringify({ ...unknown, ...known, ...offered }));

test("a chat request survives the form inside, whatever fields it has", () => {
  fc.assert(
    fc.property(body, (json) => {
      const asked = parseObject(json) ?? {};
      const model = String(asked["model"]);
      const { body: written } = writeChatRequest(readChatRequest(asked), model, rules);
      expect(parseObject(JSON.stringify(written))).toEqual(parseObject(json));
    }),
    { numRuns: 500 },
  );
});

test("one stop text is a list of one", () => {
  const asked = { model: "m", messages: [{ role: "user", content: "hi" }], stop: "x" };
  expect(writeChatRequest(readChatRequest(asked), "m", rules).body["stop"]).toEqual(["x"]);
});

test("a field that would change objects in JavaScript is not kept", () => {
  const asked = parseObject(
    '{"model":"m","messages":[{"role":"user","content":"hi","__proto__":{"name":"x"}}],' +
      '"__proto__":{"store":true}}',
  );
  const { turns, extra: others } = readChatRequest(asked ?? {});
  expect(others["store"]).toBeUndefined();
  expect(turns[0]?.extra?.["name"]).toBeUndefined();
});
