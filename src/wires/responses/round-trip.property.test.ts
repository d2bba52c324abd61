import { expect, test } from "bun:test";
import fc from "fast-check";
import { isObject, type JsonObject, parseObject } from "../../domain/json-fields.ts";
import { readResponsesRequest } from "./read-request.ts";
import { type ResponsesRules, writeResponsesRequest } from "./write-request.ts";

/** Has every field. */
class EveryField extends Set<string> {
  override has(): boolean {
    return true;
  }
}

const rules: ResponsesRules = { forwarded: new EveryField(), dropFields: [], isStrict: false };

const text = fc.oneof(fc.string(), fc.constantFrom("", " ", "\ud800", "__proto__", "redacted:"));
const name = fc.stringMatching(/^[a-z][a-z0-9-]{0,8}$/);
const maybe = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { nil: undefined });
const extra = fc.oneof(
  { weight: 3, arbitrary: fc.constant({}) },
  fc.dictionary(fc.constantFrom("x", "caller", "toString"), fc.jsonValue({ maxDepth: 2 })),
);
const mark = fc.constantFrom({}, { prompt_cache_breakpoint: { mode: "explicit" } });

function objectWith(fields: Record<string, fc.Arbitrary<unknown>>, beside = extra) {
  return fc
    .tuple(fc.record(fields), beside)
    .map(([known, unknown]): JsonObject => ({ ...unknown, ...known }));
}
function part(fields: Record<string, fc.Arbitrary<unknown>>) {
  return fc.tuple(objectWith(fields), mark).map(([known, marked]) => ({ ...known, ...marked }));
}

const inputText = part({ type: fc.constant("input_text"), text });
const image = part({
  type: fc.constant("input_image"),
  image_url: text,
  detail: maybe(fc.constantFrom("low", "high", "auto")),
});
const file = part({
  type: fc.constant("input_file"),
  file_data: fc.constantFrom("YQ==", "data:text/plain;base64,YQ=="),
  filename: maybe(text),
});
const foreignPart = objectWith({ type: fc.constant("input_video"), video: text });
const contentOf = (...parts: readonly fc.Arbitrary<JsonObject>[]) =>
  fc.oneof(text, fc.array(fc.oneof(...parts), { minLength: 1, maxLength: 3 }));

const message = objectWith({
  type: fc.constant("message"),
  role: fc.constantFrom("user", "system", "developer"),
  content: contentOf(inputText, image, file, foreignPart),
});
const said = objectWith(
  {
    type: fc.constant("message"),
    role: fc.constant("assistant"),
    content: contentOf(
      part({ type: fc.constant("output_text"), text }),
      part({ type: fc.constant("refusal"), refusal: text }),
    ),
    phase: maybe(fc.constantFrom("commentary", "final_answer")),
  },
  fc.constant({}),
);
const thought = objectWith(
  {
    type: fc.constant("reasoning"),
    summary: fc
      .array(text, { maxLength: 1 })
      .map((texts) => texts.map((each) => ({ type: "summary_text", text: each }))),
    encrypted_content: fc.string({ minLength: 1, unit: "binary" }),
  },
  fc.constant({}),
);
const called = (id: string) =>
  fc.oneof(
    objectWith({
      type: fc.constant("function_call"),
      call_id: fc.constant(id),
      name,
      namespace: maybe(name),
      arguments: text,
    }),
    objectWith({
      type: fc.constant("custom_tool_call"),
      call_id: fc.constant(id),
      name,
      input: text,
    }),
  );
const resultOf = (call: JsonObject) =>
  objectWith({
    type: fc.constant(`${String(call["type"])}_output`),
    call_id: fc.constant(call["call_id"]),
    output: contentOf(inputText, image, file),
  });
const step = fc
  .nat(9)
  .chain((id) =>
    called(`call_${id}`).chain((call) => fc.tuple(thought, fc.constant(call), resultOf(call))),
  );
const foreignItem = objectWith({ type: fc.constant("program"), code: text });
const items = fc
  .array(
    fc.oneof(
      message.map((item) => [item]),
      fc.tuple(thought, said),
      said.map((item) => [item]),
      step,
      foreignItem.map((item) => [item]),
    ),
    { minLength: 1, maxLength: 5 },
  )
  .map((groups): readonly JsonObject[] => groups.flat());

const functionTool = objectWith({
  type: fc.constant("function"),
  name,
  description: maybe(text),
  parameters: maybe(fc.constant({ type: "object" })),
  strict: maybe(fc.boolean()),
});
const customTool = objectWith({
  type: fc.constant("custom"),
  name,
  format: fc.constantFrom(undefined, { type: "grammar", syntax: "lark", definition: "start: A" }),
});
const group = objectWith(
  {
    type: fc.constant("namespace"),
    name,
    description: maybe(text),
    tools: fc.array(functionTool, { minLength: 1, maxLength: 2 }),
  },
  fc.constant({}),
);
const body = fc
  .record({
    model: fc.constant("alias"),
    instructions: maybe(fc.string({ minLength: 1 })),
    input: fc.oneof(text, items),
    tools: maybe(
      // A server takes each name once.
      fc.uniqueArray(fc.oneof(functionTool, customTool, group), {
        maxLength: 3,
        selector: ({ name }) => name,
      }),
    ),
    tool_choice: fc.constantFrom(undefined, "auto", "none"),
    text: maybe(
      fc.record({
        verbosity: maybe(fc.constantFrom("low", "high")),
        format: fc.constantFrom(undefined, { type: "json_object" }, { type: "text" }),
      }),
    ),
    max_output_tokens: maybe(fc.integer({ min: 16, max: 9_999 })),
    temperature: maybe(fc.constant(0.5)),
    top_logprobs: maybe(fc.integer({ min: 1, max: 20 })),
    parallel_tool_calls: maybe(fc.boolean()),
    reasoning: maybe(
      fc.record({ effort: maybe(text), summary: fc.constantFrom("auto", "detailed") }),
    ),
    prompt_cache_key: maybe(text),
    metadata: maybe(fc.dictionary(name, text, { maxKeys: 2 })),
    max_tool_calls: maybe(fc.nat()),
    stream: maybe(fc.boolean()),
  })
  .map(plain);

test("what a caller of Responses sends arrives as it was at a server of Responses", () => {
  fc.assert(
    fc.property(body, (sent) => {
      fc.pre(hasDistinctTools(sent));
      const read = readResponsesRequest(sent);
      const written = plain(writeResponsesRequest(read, "alias", rules).body);
      expect(meaningOf(readResponsesRequest(written))).toEqual(meaningOf(read));
    }),
    { numRuns: 1_000 },
  );
});

test("items arrive one for one, without the ids that servers refuse, ciphertexts byte for byte", () => {
  const sealed = "gAAAAAB\u0000~\u00ff\ud83d\ude00==";
  const input = [
    { type: "message", role: "developer", content: "be brief" },
    { type: "message", role: "user", content: [{ type: "input_text", text: "weather?" }] },
    { type: "reasoning", id: "rs_1", summary: [], encrypted_content: sealed },
    {
      type: "message",
      id: "item_2",
      role: "assistant",
      content: [{ type: "output_text", text: "one moment" }],
      phase: "commentary",
    },
    {
      type: "function_call",
      id: "fc_3",
      call_id: "call_3",
      name: "of",
      namespace: "weather",
      arguments: '{"city": "Ulm"}',
      status: "completed",
    },
    { type: "function_call_output", call_id: "call_3", output: "sunny" },
    { type: "custom_tool_call", call_id: "call_4", name: "patch", input: "*** Begin" },
    {
      type: "custom_tool_call_output",
      call_id: "call_4",
      output: [{ type: "input_text", text: "ok" }],
    },
  ];
  const { body: written } = writeResponsesRequest(
    readResponsesRequest({ model: "m", input }),
    "gpt-5",
    rules,
  );
  const expected = input.map((item) => {
    const { id: _, status: __, ...rest } = { id: "", status: "", ...item };
    return rest;
  });
  expect(plain(written)).toEqual({
    model: "gpt-5",
    store: false,
    include: ["reasoning.encrypted_content"],
    input: expected,
  });
});

/** As it is sent. */
function plain(value: object): JsonObject {
  return parseObject(JSON.stringify(value)) ?? {};
}

/** Without paths, which may differ. The model's own messages are joined, as texts or as parts. */
function meaningOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(meaningOf);
  if (!isObject(value)) return value;
  const isSaid = value["role"] === "assistant";
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key, each]) => key !== "at" && each !== undefined && !(isSaid && key === "isPlain"))
      .map(([key, each]) => [key, meaningOf(each)]),
  );
}

/** Others are refused. */
function hasDistinctTools(sent: JsonObject): boolean {
  try {
    readResponsesRequest(sent);
    return true;
  } catch {
    return false;
  }
}
