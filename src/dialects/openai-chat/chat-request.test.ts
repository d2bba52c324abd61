import fc from "fast-check";
import { describe, expect, test } from "bun:test";
import { GatewayError } from "../../domain/errors/gateway-error.ts";
import { checkChatRequest } from "./chat-request.ts";
import { parseEmbeddingRequest } from "../embeddings/embedding-request.ts";
import { restoreSeed } from "../request/exact-integers.ts";

const fieldNames = (
  "model messages temperature top_p n stream stream_options stop max_completion_tokens " +
  "max_tokens presence_penalty logit_bias logprobs top_logprobs seed response_format tools " +
  "tool_choice functions function_call audio modalities prediction web_search_options metadata " +
  "user role content name tool_calls tool_call_id refusal type function text image_url url " +
  "input_audio file arguments custom id schema json_schema input encoding_format dimensions " +
  "__proto__ constructor"
).split(" ");
const words = fc.constantFrom(
  "",
  ..."user assistant system tool function custom text image_url json_schema json_object".split(" "),
  ..."content auto none m https://example.com".split(" "),
);

/** JSON whose keys and texts occur in requests, so that checks deep inside are reached. */
const { hostile } = fc.letrec((tie) => ({
  hostile: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.oneof(words, fc.double({ noNaN: true }), fc.integer(), fc.boolean(), fc.constant(null)),
    fc.array(tie("hostile"), { maxLength: 4 }),
    fc
      .array(fc.tuple(fc.constantFrom(...fieldNames), tie("hostile")), { maxLength: 6 })
      .map((entries) => Object.fromEntries(entries)),
  ),
}));

const model = fc.string({ minLength: 1 });
const text = fc.string();
const maybe = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { nil: null });

const textParts = fc.array(fc.record({ type: fc.constant("text"), text }), { minLength: 1 });
const userParts = fc.array(
  fc.oneof(
    fc.record({ type: fc.constant("text"), text }),
    fc.record({
      type: fc.constant("image_url"),
      image_url: fc.record({ url: fc.webUrl(), detail: fc.constantFrom("auto", "low", null) }),
    }),
    fc.record({ type: fc.constant("file"), file: fc.record({ file_id: text }) }),
  ),
  { minLength: 1 },
);
const toolCalls = fc.array(
  fc.record({
    index: fc.nat(),
    id: text,
    type: fc.constant("function"),
    function: fc.record({ name: text, arguments: text }),
  }),
  { minLength: 1, maxLength: 4 },
);
const message = fc.oneof(
  fc.record(
    {
      role: fc.constantFrom("system", "developer"),
      content: fc.oneof(text, textParts),
      name: maybe(text),
    },
    { requiredKeys: ["role", "content"] },
  ),
  fc.record({ role: fc.constant("user"), content: fc.oneof(text, userParts) }),
  fc.record(
    { role: fc.constant("assistant"), content: maybe(text), tool_calls: toolCalls },
    { requiredKeys: ["role", "tool_calls"] },
  ),
  fc.record({
    role: fc.constant("assistant"),
    content: text,
    refusal: fc.constant(null),
    annotations: fc.constant([]),
    tool_calls: fc.constant(null),
  }),
  fc.record({ role: fc.constant("tool"), content: text, tool_call_id: text }),
);
const validBody = fc.record(
  {
    model,
    messages: fc.array(message, { minLength: 1, maxLength: 8 }),
    temperature: maybe(fc.double({ min: 0, max: 2, noNaN: true })),
    top_p: maybe(fc.double({ min: 0, max: 1, noNaN: true })),
    n: maybe(fc.integer({ min: 1, max: 128 })),
    stream: maybe(fc.boolean()),
    max_tokens: maybe(fc.integer({ min: 1 })),
    max_completion_tokens: maybe(fc.integer({ min: 1 })),
    stop: maybe(fc.oneof(text, fc.array(text, { minLength: 1, maxLength: 4 }))),
    presence_penalty: maybe(fc.double({ min: -2, max: 2, noNaN: true })),
    logit_bias: maybe(fc.dictionary(fc.nat().map(String), fc.integer({ min: -100, max: 100 }))),
    logprobs: maybe(fc.boolean()),
    seed: maybe(fc.integer()),
    tools: maybe(fc.constant([{ type: "function", function: { name: "f", parameters: {} } }])),
    metadata: maybe(
      fc.dictionary(fc.string({ maxLength: 32 }), fc.string({ maxLength: 256 }), { maxKeys: 16 }),
    ),
    service_tier: maybe(fc.constantFrom("auto", "default", "flex")),
    vendor_field: fc.jsonValue(),
  },
  { requiredKeys: ["model", "messages"] },
);

/** Runs a parser on what a caller could send, and returns what it threw, if anything. */
function refusalOf(parse: (body: unknown) => unknown, body: unknown): GatewayError | undefined {
  try {
    parse(body);
    return undefined;
  } catch (error) {
    if (error instanceof GatewayError) return error;
    throw error;
  }
}

function expectWellFormed(error: GatewayError | undefined): void {
  if (error === undefined) return;
  const { error: shown } = error.toBody();
  expect(error.status).toBe(400);
  expect(shown.type).toBe("invalid_request_error");
  expect(shown.message).not.toContain("undefined");
  expect(shown.message.length).toBeLessThan(1000);
  if (shown.param !== null) expect(shown.param).not.toMatch(/undefined|^[.[]|\.\[?\]|^$/);
}

describe("any JSON of a caller", () => {
  const bodies = fc.oneof(
    fc.jsonValue(),
    hostile,
    fc.record({ model, messages: hostile }),
    fc
      .tuple(validBody, fc.constantFrom(...fieldNames), hostile)
      .map(
        ([body, name, value]) => JSON.parse(JSON.stringify({ ...body, [name]: value })) as unknown,
      ),
  );

  test("is accepted by chat or refused with a 400", () => {
    fc.assert(
      fc.property(bodies, (body) => expectWellFormed(refusalOf(checkChatRequest, body))),
      { numRuns: 6000 },
    );
  });

  test("is accepted by embeddings or refused with a 400", () => {
    const inputs = fc.record({ model, input: hostile, encoding_format: hostile });
    fc.assert(
      fc.property(fc.oneof(bodies, inputs), (body) =>
        expectWellFormed(refusalOf(parseEmbeddingRequest, body)),
      ),
      { numRuns: 6000 },
    );
  });
});

test("a valid body becomes the request itself, unknown fields included, nulls not", () => {
  fc.assert(
    fc.property(validBody, (body) => {
      const { vendor_field: unknown } = structuredClone(body);
      const request = checkChatRequest(body);
      expect(request as unknown).toBe(body);
      expect(request["vendor_field"] ?? null).toEqual(unknown ?? null);
      const { vendor_field: _, ...known } = request;
      expect(JSON.stringify(known)).not.toMatch(/[:,[]null/);
      expect(restoreSeed(request, JSON.stringify(body))).toBe(request);
    }),
    { numRuns: 2000 },
  );
});

test("a body of 2048 messages is taken, one of 2049 is not", () => {
  const bodyOf = (length: number) => ({
    model: "m",
    messages: Array.from({ length }, () => ({ role: "user", content: "hi" })),
  });
  const longest = bodyOf(2048);
  expect(checkChatRequest(longest) as unknown).toBe(longest);
  expect(refusalOf(checkChatRequest, bodyOf(2049))?.toBody().error).toEqual({
    message:
      "Invalid 'messages': array too long. Expected an array with maximum length 2048, " +
      "but got an array with length 2049 instead.",
    type: "invalid_request_error",
    param: "messages",
    code: "array_above_max_length",
  });
});

test("a number too large for JSON's readers is a type error, not a crash", () => {
  const text = '{"model":"m","messages":[{"role":"user","content":"x"}],"seed":1e400}';
  const body: unknown = JSON.parse(text);
  expect(refusalOf(checkChatRequest, body)?.message).toBe(
    "Invalid type for 'seed': expected an integer, but got a decimal number instead.",
  );
});

test("a long value or key of the caller's is not echoed whole", () => {
  const long = "x".repeat(100_000);
  for (const fields of [
    { reasoning_effort: long },
    { metadata: { [long]: "v" } },
    { logit_bias: { [`9${"9".repeat(100_000)}`]: "x" } },
    { logit_bias: { [long]: 1 } },
    { tools: [{ type: "function", function: { name: "f" } }], functions: [{ name: long }] },
  ]) {
    const body = { model: "m", messages: [{ role: "user", content: "hi" }], ...fields };
    const shown = refusalOf(checkChatRequest, body)?.toBody();
    expect(JSON.stringify(shown ?? long).length).toBeLessThan(600);
  }
});

const user = { role: "user", content: "hi" };
const call = { id: "c", type: "function", function: { name: "f", arguments: "{}" } };
const tool = { type: "function", function: { name: "f" } };

function parse(fields: Record<string, unknown>): unknown {
  return checkChatRequest({ model: "m", messages: [user], ...fields });
}

describe("fields without effect", () => {
  const plain = { model: "m", messages: [user] };

  test("an empty list of tools is dropped with every choice among them", () => {
    expect(parse({ tools: [] })).toStrictEqual(plain);
    expect(parse({ tools: [], tool_choice: "required", parallel_tool_calls: true })).toStrictEqual(
      plain,
    );
    expect(
      parse({ tools: [], tool_choice: { type: "function", function: { name: "f" } } }),
    ).toStrictEqual(plain);
  });

  test("a choice among tools is dropped where no tools are offered", () => {
    expect(parse({ tool_choice: "auto", parallel_tool_calls: false })).toStrictEqual(plain);
    expect(parse({ tools: null, tool_choice: "none" })).toStrictEqual(plain);
  });

  test("an empty list of functions is dropped with the choice among them", () => {
    expect(parse({ functions: [], function_call: { name: "f" } })).toStrictEqual(plain);
    expect(parse({ function_call: "auto" })).toStrictEqual(plain);
  });

  test("tools and functions are told apart", () => {
    const tools = { tools: [tool], tool_choice: "auto" };
    expect(parse({ ...tools, function_call: "auto" })).toStrictEqual({ ...plain, ...tools });
  });

  test("empty lists of stop texts and modalities are dropped", () => {
    expect(parse({ stop: [], modalities: [] })).toStrictEqual(plain);
  });
});

describe("messages with empty lists", () => {
  test("an empty list of tool calls is dropped from a message that has content", () => {
    const request = parse({ messages: [{ role: "assistant", content: "a", tool_calls: [] }] });
    expect(request).toStrictEqual({ model: "m", messages: [{ role: "assistant", content: "a" }] });
  });

  test("empty content beside a tool call is dropped, and so is null", () => {
    for (const content of [[], null]) {
      const message = { role: "assistant", content, tool_calls: [call] };
      expect(parse({ messages: [message] })).toStrictEqual({
        model: "m",
        messages: [{ role: "assistant", tool_calls: [call] }],
      });
    }
  });
});

test("null content of a function's message stays, since the field is required", () => {
  const messages = [{ role: "function", name: "f", content: null }];
  expect(parse({ messages })).toStrictEqual({ model: "m", messages });
});

test("the body itself becomes the request, with the fields that the schema does not know", () => {
  const body = { model: "m", messages: [user], tools: [], thinking: { type: null } };
  const request = checkChatRequest(body);
  expect(request as unknown).toBe(body);
  expect(request).toStrictEqual({
    model: "m",
    messages: [user],
    thinking: { type: null },
  } as never);
});

test("a body with a key named __proto__ keeps it as a plain key", () => {
  const text = '{"model":"m","messages":[{"role":"user","content":"hi"}],"tools":[],';
  const request = checkChatRequest(JSON.parse(`${text}"__proto__":{"stream":true}}`));
  expect(Object.getPrototypeOf(request)).toBe(Object.prototype);
  expect(request["stream"]).toBeUndefined();
  expect(Object.hasOwn(request, "__proto__")).toBeTrue();
});
