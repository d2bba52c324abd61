import { expect, test } from "bun:test";
import fc from "fast-check";
import { UpstreamFailure } from "../../../domain/errors/upstream-failure.ts";
import { answersAsWhole } from "./encode-converse.ts";
import {
  chatOf,
  encodeChecked,
  modelWith,
  type CheckedBody,
} from "../../../../test/bedrock/checked-encode.ts";
import { objectOf, textOf } from "../../../domain/json-fields.ts";
import { chatFamilies } from "../models/facts.ts";

const text = fc.oneof(
  fc.string(),
  fc.constantFrom("hi", "", " ", "\n\t", "trailing ", "💡"),
  fc.string({ unit: "binary" }),
);
const breakpoint = fc.option(fc.constant({ mode: "explicit" }), { nil: undefined });
const control = fc.constantFrom(
  undefined,
  undefined,
  { type: "ephemeral" },
  { type: "ephemeral", ttl: "1h" },
);
const textPart = fc.record({
  type: fc.constant("text"),
  text,
  cache_control: control,
  prompt_cache_breakpoint: breakpoint,
});
const imagePart = fc.record({
  type: fc.constant("image_url"),
  image_url: fc.record({
    url: fc.oneof(
      { weight: 8, arbitrary: fc.constant("data:image/png;base64,iVBORw0KGgo=") },
      { weight: 1, arbitrary: fc.string().map((rest) => `data:${rest}`) },
    ),
  }),
});
const filePart = fc.record({
  type: fc.constant("file"),
  file: fc.record({
    filename: fc.oneof(
      fc.string().map((name) => `${name}.txt`),
      fc.constant("a.pdf"),
    ),
    file_data: fc
      .uint8Array({ minLength: 1, maxLength: 9 })
      .map((bytes) => `data:;base64,${Buffer.from(bytes).toString("base64")}`),
  }),
  prompt_cache_breakpoint: breakpoint,
});
const userParts = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: textPart },
    { weight: 1, arbitrary: imagePart },
    { weight: 1, arbitrary: filePart },
  ),
  { minLength: 1, maxLength: 4 },
);
const textParts = fc.array(textPart, { minLength: 1, maxLength: 3 });
const toolName = fc.oneof(
  fc.constantFrom("weather", "files.read", "files_read", "n".repeat(64)),
  fc.stringMatching(/^[a-zA-Z0-9_.-]{1,64}$/),
);
const callArguments = fc.oneof(fc.json(), fc.string(), fc.constantFrom("", "{}", '{"city":'));

interface CallSeed {
  readonly id: string;
  readonly name: string;
  readonly input: string;
  readonly isCustom: boolean;
  readonly result: unknown;
}

const callSeed: fc.Arbitrary<CallSeed> = fc.record({
  id: fc.oneof(fc.constantFrom("call_0", "call_1", "functions.f:0"), fc.string()),
  name: fc.oneof(toolName, fc.string()),
  input: callArguments,
  isCustom: fc.boolean(),
  result: fc.oneof(text, textParts),
});

const interruption = { role: "user", content: "Wait" };

/** Calls and their results, in any order. */
const exchange = fc
  .record({
    content: fc.option(text),
    calls: fc.uniqueArray(callSeed, { minLength: 1, maxLength: 3, selector: ({ id }) => id }),
    isReversed: fc.boolean(),
    /** Results that are missing at the start. */
    lost: fc.nat(15).map((chance) => (chance === 0 ? 1 : 0)),
    interruption: fc.nat(15).map((chance) => (chance === 0 ? [interruption] : [])),
  })
  .map(({ content, calls, isReversed, lost, interruption: between }) => {
    const results = calls.map(({ id, result }) => ({
      role: "tool",
      tool_call_id: id,
      content: result,
    }));
    return [
      { role: "assistant", content, tool_calls: calls.map(toolCall) },
      ...between,
      ...(isReversed ? results.toReversed() : results).slice(lost),
    ];
  });

function toolCall({ id, name, input, isCustom }: CallSeed): object {
  return isCustom
    ? { id, type: "custom", custom: { name, input } }
    : { id, type: "function", function: { name, arguments: input } };
}

const functionExchange = fc
  .record({ name: toolName, arguments: callArguments, result: fc.option(text) })
  .map(({ name, arguments: input, result }) => [
    { role: "assistant", content: null, function_call: { name, arguments: input } },
    { role: "function", name, content: result },
  ]);

const message = fc.oneof(
  fc.record({ role: fc.constantFrom("system", "developer"), content: fc.oneof(text, textParts) }),
  fc.record({ role: fc.constant("user"), content: fc.oneof(text, userParts) }),
  fc.record({
    role: fc.constant("assistant"),
    content: fc.option(fc.oneof(text, textParts)),
    refusal: fc.option(text),
  }),
);
const loneResult = fc.record({
  role: fc.constant("tool"),
  tool_call_id: fc.constantFrom("call_0", "x"),
  content: text,
});

const messages = fc
  .tuple(
    fc.option(fc.record({ role: fc.constant("user"), content: fc.constant("First of all") })),
    fc.array(
      fc.oneof(
        { weight: 12, arbitrary: message.map((only) => [only]) },
        { weight: 6, arbitrary: exchange },
        { weight: 2, arbitrary: functionExchange },
        { weight: 1, arbitrary: loneResult.map((only) => [only]) },
      ),
      { maxLength: 8 },
    ),
    fc.option(fc.record({ role: fc.constant("user"), content: fc.constant("Last of all") })),
  )
  .map(([first, segments, last]) =>
    [first, ...segments.flat(), last].filter((one) => one !== null),
  );

const functionDefinition = fc.record(
  {
    name: toolName,
    description: text,
    parameters: fc.constantFrom({}, { type: "object", properties: { a: { type: "string" } } }),
    strict: fc.boolean(),
  },
  { requiredKeys: ["name"] },
);
const tools = fc.array(
  fc.oneof(
    fc.record({ type: fc.constant("function"), function: functionDefinition }),
    fc.record({ type: fc.constant("custom"), custom: fc.record({ name: toolName }) }),
  ),
  { maxLength: 4 },
);
const toolChoice = fc.oneof(
  fc.constantFrom("none", "auto", "required"),
  fc.constant({ type: "function", function: { name: "weather" } }),
  fc.constant({
    type: "allowed_tools",
    allowed_tools: { mode: "auto", tools: [{ type: "function", function: { name: "weather" } }] },
  }),
);
const responseFormat = fc.constantFrom(
  { type: "text" },
  { type: "json_object" },
  { type: "json_schema", json_schema: { name: "answer", schema: { type: "object" } } },
  { type: "json_schema", json_schema: { name: "answer", strict: true } },
);

const fields = fc.record(
  {
    tools,
    tool_choice: toolChoice,
    parallel_tool_calls: fc.boolean(),
    response_format: responseFormat,
    temperature: fc.double({ min: 0, max: 2, noNaN: true }),
    top_p: fc.double({ min: 0, max: 1, noNaN: true }),
    top_k: fc.nat(100),
    max_tokens: fc.integer({ min: 1, max: 200_000 }),
    max_completion_tokens: fc.option(fc.integer({ min: 1, max: 200_000 })),
    stop: fc.oneof(text, fc.array(text, { maxLength: 4 })),
    reasoning_effort: fc.constantFrom("none", "minimal", "low", "medium", "high", "xhigh", "max"),
    service_tier: fc.constantFrom("auto", "default", "fast", "flex", "priority", "scale"),
    presence_penalty: fc.constantFrom(0, 0, 0, 0, 1),
    logprobs: fc.constantFrom(false, false, false, true),
  },
  { requiredKeys: [] },
);

const conversation = fc.record({
  request: fc.tuple(messages, fields).map(([list, rest]) => ({ messages: list, ...rest })),
  family: fc.constantFrom(...chatFamilies),
  dropUnsupported: fc.boolean(),
  isStreamed: fc.boolean(),
});

interface Sample {
  readonly request: { readonly messages: readonly object[] };
  readonly family: (typeof chatFamilies)[number];
  readonly dropUnsupported: boolean;
  readonly isStreamed: boolean;
}

test("any conversation becomes a valid body or an error that names a field", () => {
  let encoded = 0;
  let refused = 0;
  const property = fc.property(conversation, (sample) => {
    const result = encodeOrRefuse(sample);
    if (result === undefined) {
      refused += 1;
      return;
    }
    encoded += 1;
    checkNothingLost(sample, result);
  });
  fc.assert(property, { numRuns: 1_500 });
  // Both outcomes must have been tried.
  expect(encoded).toBeGreaterThan(200);
  expect(refused).toBeGreaterThan(50);
});

function encodeOrRefuse(sample: Sample): CheckedBody | undefined {
  const { family, dropUnsupported, isStreamed } = sample;
  const request = chatOf(sample.request);
  const model = modelWith("m", { family, dropUnsupported });
  try {
    const result = encodeChecked(request, model, isStreamed);
    const isWhole = answersAsWhole(request, model);
    expect(isWhole).toBe(
      result.body.toolConfig !== undefined && !model.capabilities.streamingTools,
    );
    return result;
  } catch (error) {
    if (!(error instanceof UpstreamFailure)) throw error;
    const { kind, param, message: says } = error.details;
    expect(["unsupported", "invalid-request"]).toContain(kind);
    expect(param).toMatch(/^[a-z]/);
    expect(says).toMatch(/\.$/);
    return undefined;
  }
}

/** Every word of the callers' messages, except tools', arrives once and in order. */
function checkNothingLost({ request }: Sample, { body }: CheckedBody): void {
  for (const role of ["user", "assistant"] as const) {
    const arrived = body.messages
      .filter((turn) => turn.role === role)
      .flatMap(({ content }) => content.flatMap((block) => ("text" in block ? [block.text] : [])))
      .map((words) => words.trimEnd());
    let position = 0;
    for (const words of request.messages
      .filter((one) => "role" in one && one.role === role)
      .flatMap(textsOf)) {
      const found = arrived.indexOf(words.trimEnd(), position);
      expect(found).toBeGreaterThanOrEqual(position);
      position = found + 1;
    }
  }
}

function textsOf(message: { readonly content?: unknown }): readonly string[] {
  const { content } = message;
  const parts: readonly unknown[] = Array.isArray(content) ? content : [content ?? ""];
  return parts
    .map((part) => textOf(part) ?? textOf(objectOf(part)?.["text"]) ?? "")
    .filter((words) => /\S/.test(words));
}
