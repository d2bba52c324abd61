import { describe, expect, test } from "bun:test";
import type { Block, Conversation } from "../../domain/chat/conversation.ts";
import type { JsonObject } from "../../domain/json-object.ts";
import { readMessagesRequest } from "./read-request.ts";

const user = { role: "user", content: "hi" };

function read(body: JsonObject): Conversation {
  return readMessagesRequest({ model: "claude", max_tokens: 100, messages: [user], ...body });
}

function blocksOf(...content: readonly object[]): readonly Block[] {
  return read({ messages: [{ role: "user", content }] }).turns[0]?.blocks ?? [];
}

function rolesOf({ turns }: Conversation): readonly string[] {
  return turns.map(({ role }) => role);
}

const at = "messages[0].content[0]";

test("a field that only another type of block has is kept", () => {
  const image = { type: "url", url: "https://a.example/i.png" };
  expect(
    blocksOf(
      { type: "text", text: "a", id: "t1", title: "T" },
      { type: "image", source: image, name: "photo" },
    ),
  ).toMatchObject([{ extra: { id: "t1", title: "T" } }, { extra: { name: "photo" } }]);
});

test("the smallest request is one turn of one text, with a cap that the wire demands", () => {
  expect(read({})).toMatchObject({
    wire: "messages",
    model: "claude",
    isStreamed: false,
    turns: [
      {
        role: "user",
        isPlain: true,
        at: "messages[0]",
        blocks: [{ type: "text", text: "hi", at: "messages[0].content" }],
      },
    ],
    tools: [],
    caps: [{ field: "max_tokens", tokens: 100, isDemanded: true }],
    extra: {},
  });
});

test("words of tomorrow are no failure: an effort is the largest, which the caller learns", () => {
  const conversation = read({
    output_config: { effort: "ultra" },
    cache_control: { type: "ephemeral", ttl: "2h" },
  });
  expect(conversation.thinking).toEqual({ effort: "max" });
  expect(conversation.adjusted).toEqual(new Map([["output_config.effort", "max"]]));
  expect(conversation.turns.at(-1)?.blocks.at(-1)?.cacheMark).toEqual({ form: "control" });
});

test("options are read; fields without a name here stay beside", () => {
  const { options, thinking, format, extra } = read({
    temperature: 0.5,
    top_p: 0.9,
    top_k: 40,
    stop_sequences: ["END"],
    service_tier: "standard_only",
    metadata: { user_id: "someone" },
    thinking: { type: "enabled", budget_tokens: 2048, display: "omitted" },
    output_config: { effort: "xhigh", format: { type: "json_schema", schema: { type: "object" } } },
    context_management: { edits: [] },
    mcp_servers: [],
  });
  expect(options).toMatchObject({
    temperature: 0.5,
    topP: 0.9,
    topK: 40,
    stop: ["END"],
    serviceTier: "default",
    user: "someone",
  });
  expect(thinking).toEqual({
    effort: "xhigh",
    budget: 2048,
    mode: "enabled",
    display: "omitted",
  });
  expect(format).toMatchObject({ type: "schema", schema: { type: "object" } });
  expect(extra).toEqual({ context_management: { edits: [] }, mcp_servers: [] });
});

test.each([
  [{ type: "enabled" }, "enabled"],
  [{ type: "disabled" }, "disabled"],
  [{ type: "adaptive" }, "adaptive"],
  [{ type: "between_tools" }, "adaptive"],
] as const)("thinking %p has the mode %s", (thinking, mode) => {
  expect(read({ thinking }).thinking?.mode).toBe(mode);
});

describe("system", () => {
  test("in the field is the first turn; within the messages it keeps its place", () => {
    const messages = [user, { role: "system", content: "now in French" }, user];
    const conversation = read({ system: "Be brief.", messages });
    expect(rolesOf(conversation)).toEqual(["system", "user", "system", "user"]);
    expect(conversation.turns[0]?.at).toBe("system");
    expect(conversation.turns[2]?.at).toBe("messages[1]");
  });

  test("as a list keeps its marks, and loses the line for Anthropic's accounting", () => {
    const system = [
      { type: "text", text: "x-anthropic-billing-header: cc_version=2" },
      { type: "text", text: "" },
      { type: "text", text: "Rules", cache_control: { type: "ephemeral", ttl: "1h" } },
    ];
    expect(read({ system }).turns[0]?.blocks).toEqual([
      { type: "text", text: "Rules", cacheMark: { ttl: "1h", form: "control" }, at: "system[2]" },
    ] as never);
    expect(rolesOf(read({ system: "" }))).toEqual(["user"]);
  });

  test("alone has that line: what others say of it is content", () => {
    const text = "x-anthropic-billing-header: what sends this?";
    const result = { type: "tool_result", tool_use_id: "t", content: text };
    const messages = [
      { role: "user", content: text },
      { role: "user", content: [result] },
    ];
    const [asked, answered] = read({ messages }).turns;
    expect(asked?.blocks).toMatchObject([{ type: "text", text }]);
    expect(answered?.blocks).toMatchObject([{ content: [{ type: "text", text }] }]);
  });
});

describe("turns", () => {
  test("without content are dropped", () => {
    const messages = [user, { role: "assistant", content: [{ type: "text", text: "" }] }, user];
    expect(rolesOf(read({ messages }))).toEqual(["user", "user"]);
  });
});

describe("blocks", () => {
  test("thoughts keep what only their origin understands, also without text", () => {
    expect(
      blocksOf(
        { type: "thinking", thinking: "", signature: "s1" },
        { type: "thinking", thinking: "free", signature: "" },
        { type: "thinking", thinking: "", signature: "" },
        { type: "redacted_thinking", data: "xyz" },
      ),
    ).toMatchObject([
      { type: "reasoning", text: "", opaque: "s1" },
      { type: "reasoning", text: "free", opaque: undefined },
      { type: "reasoning", text: "", opaque: "xyz", isRedacted: true },
    ]);
  });

  test("calls have their input as JSON; results have blocks, and say that they are errors", () => {
    const input = { a: [1, { b: "\u2028" }] };
    expect(
      blocksOf(
        { type: "tool_use", id: "t1", name: "f", input, caller: { type: "direct" } },
        { type: "tool_use", id: "t2", name: "g" },
        { type: "tool_result", tool_use_id: "t1", content: "done" },
        { type: "tool_result", tool_use_id: "t2", is_error: true },
        {
          type: "tool_result",
          tool_use_id: "t3",
          content: [
            { type: "text", text: "a" },
            { type: "image", source: { type: "base64", media_type: "image/png", data: "AA==" } },
            { type: "tool_reference", tool_name: "f" },
          ],
        },
      ),
    ).toMatchObject([
      {
        type: "tool-call",
        id: "t1",
        name: "f",
        arguments: JSON.stringify(input),
        extra: { caller: { type: "direct" } },
      },
      { id: "t2", arguments: "{}" },
      { type: "tool-result", callId: "t1", isPlain: true, content: [{ text: "done" }] },
      { callId: "t2", isError: true, content: [] },
      {
        callId: "t3",
        content: [
          { type: "text", at: "messages[0].content[4].content[0]" },
          { type: "image", url: "data:image/png;base64,AA==" },
          { type: "foreign", value: { type: "tool_reference", tool_name: "f" } },
        ],
      },
    ]);
  });

  test("documents are their data or their text; their images follow", () => {
    const image = { type: "image", source: { type: "url", url: "https://a.example/i.png" } };
    const content = [{ type: "text", text: "one" }, image, { type: "text", text: "two" }];
    expect(
      blocksOf(
        {
          type: "document",
          title: "Report",
          context: "of May",
          citations: { enabled: true },
          source: { type: "base64", media_type: "application/pdf", data: "JVBE" },
        },
        { type: "document", source: { type: "text", media_type: "text/plain", data: "plain" } },
        { type: "document", source: { type: "content", content } },
      ),
    ).toMatchObject([
      {
        type: "document",
        data: "data:application/pdf;base64,JVBE",
        filename: "Report",
        context: "of May",
        extra: { citations: { enabled: true } },
      },
      { type: "document", text: "plain" },
      { type: "document", text: "one\ntwo" },
      { type: "image", url: "https://a.example/i.png" },
    ]);
  });

  test("that no other wire has stay whole, with what they tell a model", () => {
    const search = {
      type: "search_result",
      title: "T",
      source: "https://a.example",
      content: [{ type: "text", text: "found" }],
    };
    const use = { type: "server_tool_use", id: "srv", name: "web_search", input: {} };
    expect(blocksOf(search, use)).toMatchObject([
      { type: "foreign", value: search, text: "T\nhttps://a.example\nfound" },
      { type: "foreign", value: use, text: undefined },
    ]);
  });
});

describe("cache marks", () => {
  const mark = { type: "ephemeral" };
  const read5m = { ttl: undefined, form: "control" } as const;

  test("are those of blocks, calls, results and tools", () => {
    const blocks = blocksOf(
      { type: "text", text: "a", cache_control: { type: "ephemeral", ttl: "5m" } },
      { type: "tool_use", id: "t", name: "f", input: {}, cache_control: mark },
      { type: "tool_result", tool_use_id: "t", content: "x", cache_control: mark },
    );
    expect(blocks.map(({ cacheMark }) => cacheMark)).toEqual([
      { ttl: "5m", form: "control" },
      read5m,
      read5m,
    ]);
    const tool = { name: "f", input_schema: { type: "object" }, cache_control: mark };
    expect(read({ tools: [tool] }).tools[0]?.cacheMark).toEqual(read5m);
  });

  test("beside the messages are one on the last block, unless it has its own", () => {
    const ttl = { type: "ephemeral", ttl: "1h" };
    const block = { type: "text", text: "a" };
    const marks = (body: JsonObject) =>
      read(body).turns.map(({ blocks }) => blocks.map(({ cacheMark }) => cacheMark?.ttl));
    const messages = [{ role: "user", content: [block, block] }];
    expect(marks({ messages, cache_control: ttl })).toEqual([[undefined, "1h"]]);
    const own = { ...block, cache_control: { type: "ephemeral", ttl: "5m" } };
    const marked = [{ role: "user", content: [block, own] }];
    expect(marks({ messages: marked, cache_control: ttl })).toEqual([[undefined, "5m"]]);
  });
});

describe("tools", () => {
  const own = {
    name: "f",
    description: "does",
    input_schema: { type: "object" },
    strict: true,
    eager_input_streaming: true,
  };

  test("of the caller are kept, those of the provider are dropped with a notice", () => {
    const search = { type: "web_search_20250305", name: "web_search", max_uses: 5 };
    const { tools, adjusted } = read({ tools: [search, own, { ...own, type: "custom" }] });
    expect(tools).toMatchObject([
      {
        kind: "function",
        name: "f",
        description: "does",
        parameters: { type: "object" },
        strict: true,
        extra: { eager_input_streaming: true },
        at: "tools[1]",
      },
      { name: "f", at: "tools[2]" },
    ]);
    expect(adjusted).toEqual(new Map([["server_tools", "dropped"]]));
    expect(read({ tools: [own] }).adjusted).toBeUndefined();
  });

  test.each([
    [{ type: "auto" }, { mode: "auto" }],
    [{ type: "any" }, { mode: "required" }],
    [{ type: "none" }, { mode: "none" }],
    [
      { type: "tool", name: "f" },
      { mode: "named", kind: "function", name: "f" },
    ],
  ] as const)("choice %p is %p", (choice, wanted) => {
    expect(read({ tools: [own], tool_choice: choice }).toolChoice).toEqual(wanted);
    expect(read({ tool_choice: choice }).toolChoice).toBeUndefined();
  });

  test("one at a time is an option of the choice", () => {
    const choice = { type: "auto", disable_parallel_tool_use: true };
    expect(read({ tools: [own], tool_choice: choice }).options.parallelToolCalls).toBe(false);
    expect(read({ tools: [own] }).options.parallelToolCalls).toBeUndefined();
  });
});

test("the path of a block is that of the caller's body", () => {
  expect(blocksOf({ type: "text", text: "a" })[0]?.at).toBe(at);
});
