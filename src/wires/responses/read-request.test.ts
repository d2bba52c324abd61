import { describe, expect, test } from "bun:test";
import { readResponsesRequest } from "./read-request.ts";
import { GatewayError } from "../../domain/errors/gateway-error.ts";

function read(fields: Readonly<Record<string, unknown>>) {
  return readResponsesRequest({ model: "m", input: "hi", ...fields });
}

function turnsOf(input: unknown) {
  return read({ input }).turns;
}

function refusalOf(fields: Readonly<Record<string, unknown>>) {
  try {
    read(fields);
  } catch (error) {
    if (error instanceof GatewayError) return error.toBody().error;
    throw error;
  }
  return undefined;
}

test("a text is a user's turn, and instructions are the system's before it", () => {
  expect(read({ instructions: "Be brief." }).turns).toEqual([
    {
      role: "system",
      blocks: [{ type: "text", text: "Be brief.", at: "instructions" }],
      isPlain: true,
      at: "instructions",
    },
    {
      role: "user",
      blocks: [{ type: "text", text: "hi", at: "input" }],
      isPlain: true,
      at: "input",
    },
  ]);
});

describe("items", () => {
  test("a message may lack its type, and has parts of all kinds", () => {
    const [turn, ...others] = turnsOf([
      {
        role: "user",
        content: [
          { type: "input_text", text: "a", prompt_cache_breakpoint: { mode: "explicit" } },
          { type: "input_image", image_url: "data:image/png;base64,AA", detail: "low" },
          { type: "input_file", file_data: "data:application/pdf;base64,AA", filename: "a.pdf" },
          { type: "input_hologram", size: 3 },
        ],
      },
    ]);
    expect(others).toEqual([]);
    expect(turn).toMatchObject({ role: "user", at: "input[0]" });
    expect(turn?.blocks).toMatchObject([
      { type: "text", text: "a", cacheMark: { form: "breakpoint" }, at: "input[0].content[0]" },
      { type: "image", url: "data:image/png;base64,AA", detail: "low" },
      { type: "document", data: "data:application/pdf;base64,AA", filename: "a.pdf" },
      { type: "foreign", value: { type: "input_hologram", size: 3 } },
    ]);
  });

  test("what the model wrote in one step is one turn, in its order", () => {
    const turns = turnsOf([
      { role: "user", content: "go" },
      {
        type: "reasoning",
        id: "rs_1",
        summary: [{ type: "summary_text", text: "hm" }],
        content: null,
        encrypted_content: "sig",
      },
      {
        type: "message",
        role: "assistant",
        phase: "commentary",
        content: [{ type: "output_text", text: "I look." }],
      },
      { type: "function_call", id: "fc_1", call_id: "c1", name: "read", arguments: "{}" },
      {
        type: "custom_tool_call",
        call_id: "c2",
        name: "patch",
        input: "*** Begin",
        namespace: "edit",
      },
      {
        type: "function_call_output",
        id: "fco_1",
        call_id: "c1",
        output: [
          { type: "input_text", text: "x" },
          { type: "input_image", image_url: "https://a/b.png" },
        ],
      },
      { type: "custom_tool_call_output", call_id: "c2", output: "done" },
    ]);
    expect(turns.map(({ role }) => role)).toEqual(["user", "assistant", "user", "user"]);
    expect(turns[1]?.blocks).toMatchObject([
      { type: "reasoning", text: "hm", opaque: "sig", at: "input[1]" },
      { type: "text", text: "I look.", extra: { phase: "commentary" } },
      { type: "tool-call", id: "c1", kind: "function", name: "read", arguments: "{}" },
      {
        type: "tool-call",
        id: "c2",
        kind: "custom",
        name: "patch",
        namespace: "edit",
        arguments: "*** Begin",
      },
    ]);
    expect(turns[2]?.blocks).toMatchObject([
      { type: "tool-result", callId: "c1", content: [{ text: "x" }, { url: "https://a/b.png" }] },
    ]);
    expect(turns[3]?.blocks).toMatchObject([
      { type: "tool-result", callId: "c2", content: [{ text: "done" }], isPlain: true },
    ]);
  });

  test("an unknown item does not part a call from its output", () => {
    const turns = turnsOf([
      { type: "function_call", call_id: "c1", name: "read", arguments: "{}" },
      { type: "web_search_call", id: "ws_1", status: "completed" },
      { type: "function_call_output", call_id: "c1", output: "x" },
      { type: "configuration_update", value: 1 },
    ]);
    expect(turns.map(({ role }) => role)).toEqual(["assistant", "user", "user"]);
    expect(turns[0]?.blocks.map(({ type }) => type)).toEqual(["tool-call", "foreign"]);
  });

  test("words between a call and its outputs come after these, as other wires want it", () => {
    const call = (id: string) => ({
      type: "function_call",
      call_id: id,
      name: "read",
      arguments: "{}",
    });
    const output = (id: string) => ({ type: "function_call_output", call_id: id, output: "x" });
    const say = (role: string, content: string) => ({ role, content });
    const placesOf = (...items: object[]) => turnsOf(items).map(({ at }) => at.slice(6, -1));
    const answered = [call("c1"), say("user", "a"), output("c1"), say("user", "b")];
    expect(placesOf(...answered)).toEqual(["0", "2", "1", "3"]);
    const both = [call("c1"), call("c2"), output("c1"), say("developer", "a"), output("c2")];
    expect(placesOf(...both, say("assistant", "b"))).toEqual(["0", "2", "4", "3", "5"]);
    const interrupted = [call("c1"), say("user", "stop"), say("assistant", "b"), output("c1")];
    expect(placesOf(...interrupted, say("user", "c"))).toEqual(["0", "1", "2", "3", "4"]);
    expect(placesOf(call("c1"), say("user", "stop"))).toEqual(["0", "1"]);
  });

  test("an output that is sent again is left out, unless its call is made again", () => {
    const call = { type: "function_call", call_id: "c1", name: "read", arguments: "{}" };
    const output = { type: "function_call_output", call_id: "c1", output: "x" };
    const roles = (...items: object[]): readonly string[] => turnsOf(items).map(({ role }) => role);
    const step = ["assistant", "user"];
    expect(roles(call, output, output)).toEqual(step);
    expect(roles(call, output, { ...call, call_id: "c2" }, output)).toEqual([...step, "assistant"]);
    expect(roles(call, output, call, output)).toEqual([...step, ...step]);
    expect(roles(output)).toEqual(["user"]);
  });

  test("messages of agents are marked as such", () => {
    const [turn] = turnsOf([
      { type: "agent_message", author: "root", content: [{ type: "input_text", text: "do it" }] },
    ]);
    expect(turn).toMatchObject({
      role: "user",
      blocks: [{ type: "text", text: '<agent_message author="root">\ndo it\n</agent_message>' }],
    });
  });

  test("a thought that only its provider has is nothing; a redacted one stays redacted", () => {
    expect(turnsOf([{ type: "reasoning", id: "rs_1", summary: [] }])).toEqual([]);
    const item = { type: "reasoning", summary: [], encrypted_content: "redacted:xyz" };
    const [turn] = turnsOf([item]);
    expect(turn?.blocks).toEqual([
      { type: "reasoning", text: "", opaque: "xyz", isRedacted: true, at: "input[0]" },
    ]);
  });

  test("empty messages are left out", () => {
    expect(turnsOf([{ role: "assistant", content: [] }])).toEqual([]);
  });
});

describe("tools", () => {
  const plain = { type: "function", name: "f", parameters: { type: "object" }, strict: true };

  test("are functions, custom tools with a grammar, groups, and those of items", () => {
    const { tools } = read({
      tools: [
        plain,
        {
          type: "custom",
          name: "apply_patch",
          format: { type: "grammar", syntax: "lark", definition: "start: /a/" },
        },
        { type: "namespace", name: "mail", description: "d", tools: [{ ...plain, name: "send" }] },
      ],
      input: [
        { type: "additional_tools", role: "developer", tools: [{ ...plain, name: "late" }] },
        { role: "user", content: "hi" },
      ],
    });
    expect(tools).toMatchObject([
      { kind: "function", name: "f", strict: true, at: "tools[0]" },
      {
        kind: "custom",
        name: "apply_patch",
        grammar: { syntax: "lark", definition: "start: /a/" },
      },
      { kind: "function", name: "send", namespace: "mail", at: "tools[2].tools[0]" },
      { kind: "function", name: "late", at: "input[0].tools[0]" },
    ]);
  });

  test("of OpenAI's servers are dropped, and the caller is told", () => {
    const { tools, adjusted } = read({
      tools: [plain, { type: "web_search" }, { type: "x\r\nset-cookie: a" }],
      tool_choice: "auto",
    });
    expect(tools.map(({ name }) => name)).toEqual(["f"]);
    expect(Object.fromEntries(adjusted ?? [])).toEqual({
      "tools.web_search": "dropped",
      "tools.unknown": "dropped",
    });
  });

  test("of OpenAI's servers are refused when nothing else could be called", () => {
    const tools = [{ type: "web_search" }];
    expect(refusalOf({ tools })).toMatchObject({
      code: "unsupported_parameter",
      param: "tools[0].type",
    });
    expect(refusalOf({ tools, tool_choice: "none" })).toBeUndefined();
    expect(
      refusalOf({ tools: [...tools, plain], tool_choice: { type: "web_search" } }),
    ).toMatchObject({ code: "unsupported_parameter", param: "tool_choice.type" });
  });

  test("the six forms of the choice", () => {
    const group = { type: "namespace", name: "mail", tools: [{ ...plain, name: "send" }] };
    const custom = { type: "custom", name: "patch" };
    const choiceOf = (choice: unknown) =>
      read({ tools: [plain, group, custom], tool_choice: choice }).toolChoice;
    for (const mode of ["auto", "none", "required"] as const) {
      expect(choiceOf(mode)).toEqual({ mode });
    }
    expect(choiceOf({ type: "function", name: "send" })).toEqual({
      mode: "named",
      kind: "function",
      name: "mail__send",
    });
    expect(choiceOf({ type: "custom", name: "patch" })).toEqual({
      mode: "named",
      kind: "custom",
      name: "patch",
    });
    expect(
      choiceOf({
        type: "allowed_tools",
        mode: "required",
        tools: [{ type: "function", name: "f" }, { type: "mcp" }],
      }),
    ).toEqual({ mode: "allowed", isRequired: true, tools: [{ kind: "function", name: "f" }] });
    expect(read({ tool_choice: "auto" }).toolChoice).toBeUndefined();
    expect(refusalOf({ tool_choice: "required" })?.param).toBe("tool_choice");
  });
});

test("options, the cap, the format and thinking", () => {
  const conversation = read({
    stream: true,
    temperature: 0.5,
    top_p: 0.9,
    max_output_tokens: 64,
    top_logprobs: 2,
    include: ["message.output_text.logprobs", "reasoning.encrypted_content"],
    parallel_tool_calls: false,
    reasoning: { effort: "high", summary: "auto", context: "all_turns" },
    text: {
      verbosity: "low",
      format: { type: "json_schema", name: "n", schema: { type: "object" }, strict: true },
    },
    service_tier: "flex",
    metadata: { a: "b" },
    prompt_cache_key: "k",
    safety_identifier: "s",
    user: "u",
    store: true,
    truncation: "auto",
    client_metadata: { a: 1 },
    a_new_field: { b: 2 },
  });
  expect(conversation).toMatchObject({
    wire: "responses",
    isStreamed: true,
    caps: [{ field: "max_output_tokens", tokens: 64 }],
    options: {
      temperature: 0.5,
      topP: 0.9,
      logprobs: true,
      topLogprobs: 2,
      parallelToolCalls: false,
      verbosity: "low",
      serviceTier: "flex",
      metadata: { a: "b" },
      promptCacheKey: "k",
      safetyIdentifier: "s",
      user: "u",
    },
    format: { type: "schema", name: "n", schema: { type: "object" }, strict: true },
    thinking: { effort: "high", display: "summarized" },
    extra: { a_new_field: { b: 2 } },
  });
});

test("a field that only another type of part has is kept", () => {
  const part = { type: "input_text", text: "a", detail: "high" };
  const { turns } = read({ input: [{ type: "message", role: "user", content: [part] }] });
  expect(turns[0]?.blocks).toMatchObject([{ extra: { detail: "high" } }]);
});
