import fc from "fast-check";
import { describe, expect, test } from "bun:test";
import { GatewayError } from "../../domain/errors/gateway-error.ts";
import { responseWorld } from "../../../test/support/response-world.ts";
import { createResponses } from "./responses.ts";

const { stored, callOf } = responseWorld();
const surface = createResponses({ responses: stored });

async function read(body: unknown) {
  const asking = await surface.read({ value: structuredClone(body), text: "" }, callOf());
  return asking.conversation;
}

async function refusalOf(body: unknown) {
  try {
    await read(body);
    return undefined;
  } catch (error) {
    if (error instanceof GatewayError) return { status: error.status, ...error.toBody().error };
    throw error;
  }
}

const plain = { model: "m", input: "hi" };
const user = { role: "user", content: "hi" };
const tool = { type: "function", name: "f" };

describe("refusals name the field", () => {
  const part = (fields: object) => ({ input: [{ role: "user", content: [fields] }] });
  const cases: readonly (readonly [fields: object, param: string, code: string | null])[] = [
    [{ input: undefined }, "input", "missing_required_parameter"],
    [{ input: 3 }, "input", "invalid_type"],
    [{ input: [] }, "input", "empty_array"],
    [{ input: [{ type: "web_search_call" }], instructions: "Hi" }, "input", "empty_array"],
    [{ input: ["hi"] }, "input[0]", "invalid_type"],
    [{ input: [{ role: "robot", content: "a" }] }, "input[0].role", "invalid_value"],
    [{ input: [{ role: "user" }] }, "input[0].content", "missing_required_parameter"],
    [
      { input: [{ type: "function_call", call_id: "c", name: "f" }] },
      "input[0].arguments",
      "missing_required_parameter",
    ],
    [
      { input: [{ type: "function_call_output", output: "x" }] },
      "input[0].call_id",
      "missing_required_parameter",
    ],
    [
      part({ type: "input_image", file_id: "file_1" }),
      "input[0].content[0].file_id",
      "unsupported_parameter",
    ],
    [
      part({ type: "input_file", file_url: "https://a" }),
      "input[0].content[0].file_url",
      "unsupported_parameter",
    ],
    [
      part({ type: "input_image", image_url: "ftp://a" }),
      "input[0].content[0].image_url",
      "invalid_value",
    ],
    [{ input: [{ type: "compaction_trigger" }] }, "input[0].type", "unsupported_parameter"],
    [{ conversation: "conv_1" }, "conversation", "unsupported_parameter"],
    [{ background: true }, "background", "unsupported_parameter"],
    [{ prompt: { id: "pmpt_1" } }, "prompt", "unsupported_parameter"],
    [{ moderation: { model: "a" } }, "moderation", "unsupported_parameter"],
    [{ previous_response_id: "resp_1" }, "previous_response_id", "previous_response_not_found"],
    [
      { previous_response_id: "resp_1", input: undefined },
      "previous_response_id",
      "previous_response_not_found",
    ],
    [{ input: [user, { type: "item_reference", id: "fc_1" }] }, "input[1].id", null],
    [{ max_output_tokens: 15 }, "max_output_tokens", "integer_below_min_value"],
    [{ reasoning: { effort: "huge" } }, "reasoning.effort", "invalid_value"],
    [{ text: { format: { type: "json_object" } } }, "input", null],
    [{ tools: [{ name: "f" }] }, "tools[0].type", "missing_required_parameter"],
    [
      { tools: [{ type: "function", function: { name: "f" } }] },
      "tools[0].name",
      "missing_required_parameter",
    ],
    [
      { tools: [tool], tool_choice: { type: "function", name: "g" } },
      "tool_choice",
      "invalid_value",
    ],
    [
      {
        tools: [tool],
        tool_choice: { type: "allowed_tools", mode: "auto", tools: [{ ...tool, name: "g" }] },
      },
      "tool_choice",
      "invalid_value",
    ],
    [
      { tools: [{ type: "namespace", name: "g", tools: [{ type: "function" }] }] },
      "tools[0].tools[0].name",
      "missing_required_parameter",
    ],
  ];
  for (const [fields, param, code] of cases) {
    test(`${param} of ${JSON.stringify(fields).slice(0, 90)}`, async () => {
      expect(await refusalOf({ ...plain, ...fields })).toMatchObject({ status: 400, param, code });
    });
  }
});

test("what clients send beyond the schema breaks no call", async () => {
  const body = {
    model: "m",
    input: [
      { type: "message", role: "developer", content: "Be brief.", id: "msg_0", status: null },
      { ...user, internal_chat_message_metadata_passthrough: { a: 1 } },
      { type: "item_reference", id: "rs_1" },
      { id: "msg_2" },
      { type: "reasoning", id: "rs_2", summary: [], content: null, encrypted_content: null },
      { type: "an_item_of_next_month", field: [{}] },
      { role: "user", content: [{ type: "a_part_of_next_month" }] },
    ],
    background: false,
    conversation: null,
    prompt: null,
    previous_response_id: null,
    instructions: null,
    store: true,
    include: ["web_search_call.results", "of.next.month"],
    reasoning: { effort: "low", summary: null, context: "all_turns", mode: "pro" },
    stream_options: { include_obfuscation: false },
    context_management: [{ type: "compaction", compact_threshold: 1000 }],
    client_metadata: { a: "b" },
    truncation: "auto",
    service_tier: "ultrafast",
    text: { verbosity: "low" },
    field_of_next_month: { a: 1 },
  };
  expect((await read(body)).turns.map(({ role }) => role)).toEqual([
    "developer",
    "user",
    // The thought that is not stored.
    "assistant",
    "user",
  ]);
});

test("half a surrogate pair in the arguments of a call is replaced", async () => {
  const call = { type: "function_call", call_id: "c", name: "f", arguments: '{"a":"\\ud83d"}' };
  const { turns } = await read({ model: "m", input: [user, call] });
  expect(turns[1]?.blocks).toMatchObject([{ arguments: '{"a":"\\ufffd"}' }]);
});

const names = (
  "model input instructions stream include tools tool_choice text reasoning metadata type role id " +
  "content call_id name arguments output summary encrypted_content format schema parameters " +
  "namespace detail image_url file_data previous_response_id conversation __proto__ constructor"
).split(" ");
const words = fc.constantFrom(
  ...(
    "user assistant system message function_call function_call_output custom_tool_call reasoning " +
    "item_reference additional_tools agent_message input_text input_image input_file output_text " +
    "refusal function custom namespace web_search allowed_tools auto required json_schema grammar"
  ).split(" "),
  "",
  "https://a",
);
const { hostile } = fc.letrec((tie) => ({
  hostile: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.oneof(words, fc.double({ noNaN: true }), fc.integer(), fc.boolean(), fc.constant(null)),
    fc.array(tie("hostile"), { maxLength: 4 }),
    fc
      .array(fc.tuple(fc.constantFrom(...names), tie("hostile")), { maxLength: 6 })
      .map((entries) => Object.fromEntries(entries)),
  ),
}));

test("any JSON of a caller is accepted or refused with a 400 that names a field", async () => {
  const item = fc.oneof(
    fc.record({ type: words, role: words, content: hostile, call_id: words, output: hostile }),
    fc.record({ type: words, name: words, tools: fc.array(hostile), arguments: words }),
    hostile,
  );
  const tool = fc.record({ type: words, name: words, parameters: hostile, tools: hostile });
  const bodies = fc.oneof(
    hostile,
    fc.record({ model: words, input: fc.array(item) }),
    fc.record({ model: words, input: words, tools: fc.array(tool), tool_choice: hostile }),
    fc
      .tuple(fc.constantFrom(...names), hostile)
      .map(([name, value]) => ({ ...plain, [name]: value })),
  );
  await fc.assert(
    fc.asyncProperty(bodies, async (body) => {
      const refusal = await refusalOf(body);
      if (refusal === undefined) return;
      expect(refusal.status).toBe(400);
      expect(refusal.message).not.toContain("undefined");
      expect(refusal.message.length).toBeLessThan(1000);
      if (refusal.param !== null) expect(refusal.param).not.toMatch(/undefined|^[.[]|\.\[?\]|^$/);
    }),
    { numRuns: 6000 },
  );
});

test("who refers to a response that is not there learns how long responses are kept", async () => {
  const refusal = await refusalOf({ ...plain, previous_response_id: "resp_1" });
  expect(refusal?.message).toBe(
    "Previous response with id 'resp_1' not found. Responses are kept for the time of the key's " +
      "plan, 1 hour by default, and not at all with 'store: false'.",
  );
});

describe("a result that names no call", () => {
  const call = (id: string) => ({ type: "function_call", call_id: id, name: "f", arguments: "{}" });
  const result = (id?: string | null) => ({
    type: "function_call_output",
    call_id: id,
    output: "x",
  });

  test("answers the only call without a result", async () => {
    for (const id of [null, undefined]) {
      const input = [call("a"), result("a"), call("b"), result(id)];
      const { turns } = await read({ model: "m", input });
      const results = turns.flatMap(({ blocks }) => blocks.filter((b) => b.type === "tool-result"));
      expect(results).toMatchObject([{ callId: "a" }, { callId: "b" }]);
    }
  });

  test("is refused with a reason if there are several, or none", async () => {
    for (const before of [
      [call("a"), call("b")],
      [call("a"), result("a")],
    ]) {
      const refusal = await refusalOf({ model: "m", input: [...before, result(null)] });
      expect(refusal).toMatchObject({ status: 400, param: "input[2].call_id" });
      expect(refusal?.message).toContain("exactly one");
    }
  });
});
