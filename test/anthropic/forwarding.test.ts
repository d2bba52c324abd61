import { afterAll, beforeAll, expect, test } from "bun:test";
import { startGateway, type TestGateway } from "../support/gateway.ts";

/** What the provider gets, field by field. */
interface Received {
  readonly path: string;
  readonly headers: Headers;
  readonly text: string;
  readonly body: Record<string, unknown>;
}

let server: Bun.Server<undefined>;
let gateway: TestGateway;
let received: Received | undefined;

const answer = {
  id: "msg_1",
  type: "message",
  content: [{ type: "text", text: "ok" }],
  stop_reason: "end_turn",
  usage: { input_tokens: 1, output_tokens: 1 },
};

beforeAll(async () => {
  server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const text = await request.text();
      const body = JSON.parse(text) as Received["body"];
      const path = new URL(request.url).pathname;
      received = { path, headers: request.headers, text, body };
      return Response.json(path.endsWith("count_tokens") ? { input_tokens: 5 } : answer);
    },
  });
  const model = (alias: string, upstream: string): string => `
  ${alias}:
    kind: chat
    context_window: 1000000
    max_output_tokens: 64000
    targets: [{ upstream: ${upstream}, model: claude-opus-4-8 }]`;
  const key = `kind: anthropic, base_url: "${server.url.origin}", api_key: sk-ant-api03-x`;
  gateway = await startGateway({
    sections: {
      upstreams: `
  open:
    ${key.replaceAll(", ", "\n    ")}
    forward_fields:
      [context_management, eager_input_streaming, search_result, web_search_tool_result, web_fetch_tool_result]
    forward_betas: [context-management-2025-06-27]
    betas: [own-2026-01-01]
  closed: { ${key} }`,
      models: model("open", "open") + model("closed", "closed"),
    },
  });
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await server.stop(true);
});

const foreign = { type: "web_search_tool_result", tool_use_id: "s", content: [] };
const request = {
  max_tokens: 1_000,
  system: [{ type: "text", text: "Be brief.", cache_control: { type: "ephemeral", ttl: "1h" } }],
  context_management: { edits: [] },
  unheard_of: 1,
  metadata: { user_id: "u" },
  tools: [{ name: "look", input_schema: { type: "object" }, eager_input_streaming: true, odd: 1 }],
  tool_choice: { type: "none" },
  messages: [
    { role: "user", content: [{ type: "text", text: "hi", citations: [1], odd: 2 }] },
    { role: "assistant", content: [{ type: "text", text: "found" }, foreign] },
    { role: "user", content: "go on" },
  ],
};
const betas = { "anthropic-beta": "context-management-2025-06-27, other-2026-01-01" };

async function send(path: string, body: object | string): Promise<Received> {
  received = undefined;
  const response = await gateway.post(path, body, { headers: betas });
  expect(response.status).toBe(200);
  if (received === undefined) throw new Error("Nothing was received.");
  return received;
}

test("fields, types of blocks and betas that the operator names are sent on", async () => {
  const { path, headers, body } = await send("/v1/messages", { model: "open", ...request });
  expect(path).toBe("/v1/messages");
  expect(headers.get("x-api-key")).toBe("sk-ant-api03-x");
  expect(headers.get("authorization")).toBeNull();
  expect(headers.get("anthropic-version")).toBe("2023-06-01");
  expect(headers.get("anthropic-beta")).toBe("own-2026-01-01,context-management-2025-06-27");
  expect(body).toEqual({
    model: "claude-opus-4-8",
    max_tokens: 1_000,
    system: request.system,
    context_management: { edits: [] },
    metadata: { user_id: expect.any(String) },
    tools: [{ name: "look", input_schema: expect.anything(), eager_input_streaming: true }],
    tool_choice: { type: "none" },
    messages: [
      { role: "user", content: [{ type: "text", text: "hi", citations: [1] }] },
      { role: "assistant", content: [{ type: "text", text: "found" }, foreign] },
      { role: "user", content: [{ type: "text", text: "go on" }] },
    ],
  });
});

test("without names only known fields are", async () => {
  const { headers, body } = await send("/v1/messages", { model: "closed", ...request });
  expect(headers.get("anthropic-beta")).toBeNull();
  const text = JSON.stringify(body);
  for (const word of ["context_management", "unheard_of", "eager", "web_search", "odd"]) {
    expect(text).not.toContain(word);
  }
});

test("callers of chat send none of them", async () => {
  const { headers, body } = await send("/v1/chat/completions", {
    model: "open",
    context_management: { edits: [] },
    messages: [{ role: "user", content: [{ type: "text", text: "hi", citations: [1] }] }],
    reasoning_effort: "max",
  });
  expect(headers.get("anthropic-beta")).toBe("own-2026-01-01");
  expect(body).toEqual({
    model: "claude-opus-4-8",
    max_tokens: expect.any(Number),
    messages: [{ role: "user", content: [{ type: "text", text: "hi" }] }],
    thinking: { type: "adaptive", display: "summarized" },
    output_config: { effort: "max" },
  });
});

test("more than four cache marks lose their earliest", async () => {
  const marked = (text: string) => ({ type: "text", text, cache_control: { type: "ephemeral" } });
  const messages = [{ role: "user", content: ["a", "b", "c", "d", "e"].map(marked) }];
  const { body } = await send("/v1/messages", { model: "closed", max_tokens: 10, messages });
  const [turn] = body["messages"] as { content: { cache_control?: object }[] }[];
  expect(turn?.content.map(({ cache_control: mark }) => mark !== undefined)).toEqual([
    false,
    true,
    true,
    true,
    true,
  ]);
});

test("marks within results and blocks of the provider's tools count, too", async () => {
  const mark = { cache_control: { type: "ephemeral" } };
  const words = (text: string) => ({ type: "text", text, ...mark });
  const found = (title: string) => {
    return { type: "search_result", source: "s", title, content: [words(title)], ...mark };
  };
  const fetched = { type: "web_fetch_result", content: { type: "document", ...mark } };
  const messages = [
    { role: "user", content: [words("a")] },
    {
      role: "assistant",
      content: [
        { type: "web_fetch_tool_result", tool_use_id: "s", content: fetched, ...mark },
        { type: "tool_use", id: "t", name: "look", input: { cache_control: 1 }, ...mark },
      ],
    },
    {
      role: "user",
      content: [
        { type: "tool_result", tool_use_id: "t", content: ["b", "c", "d"].map(found) },
        found("e"),
        words("f"),
      ],
    },
  ];
  const tools = [{ name: "look", input_schema: { type: "object" }, ...mark }];
  const system = [words("Be brief.")];
  const body = { model: "open", max_tokens: 10, system, tools, messages };
  const { text, body: sent } = await send("/v1/messages", body);
  expect(text.split('"cache_control":{').length - 1).toBe(4);
  // The last four, in their places; what a tool was given is no mark.
  const marks = (sent["messages"] as { content: Record<string, unknown>[] }[]).map(({ content }) =>
    content.map((block) => block["cache_control"] !== undefined),
  );
  expect(marks).toEqual([[false], [false, true], [true, true, true]]);
  expect(text).toContain('"input":{"cache_control":1}');
});

test("a count is of what would be sent, with its betas and integers of 64 bits", async () => {
  const big = "1234567890123456789";
  const use = { type: "tool_use", id: "t", name: "look", input: { id: "BIG" } };
  const result = { type: "tool_result", tool_use_id: "t", content: "seen" };
  const asked = {
    ...request,
    model: "open",
    thinking: { type: "adaptive" },
    output_config: { effort: "low" },
    messages: [
      { role: "user", content: "look" },
      { role: "assistant", content: [use] },
      { role: "user", content: [result] },
      { role: "system", content: "Be kind." },
    ],
  };
  const written = JSON.stringify(asked).replace('"BIG"', big);
  const called = await send("/v1/messages", written);
  const counted = await send("/v1/messages/count_tokens", written);
  expect(counted.path).toBe("/v1/messages/count_tokens");
  const { max_tokens: _, metadata: __, ...content } = called.body;
  expect(counted.body).toEqual(content);
  expect(content).toHaveProperty("context_management");
  for (const { text, headers } of [called, counted]) {
    expect(text).toContain(`"input":{"id":${big}}`);
    expect(headers.get("anthropic-beta")).toBe("own-2026-01-01,context-management-2025-06-27");
  }
});

test("the mark of a last instruction stays with it", async () => {
  const mark = { cache_control: { type: "ephemeral", ttl: "1h" } };
  const messages = [
    { role: "user", content: "hi" },
    { role: "system", content: [{ type: "text", text: "Be kind.", ...mark }] },
  ];
  const marked = { type: "text", text: "<system>\nBe kind.\n</system>", ...mark };
  for (const path of ["/v1/messages", "/v1/chat/completions"]) {
    const { body } = await send(path, { model: "closed", max_tokens: 10, messages });
    expect(body["messages"]).toEqual([
      { role: "user", content: [{ type: "text", text: "hi" }, marked] },
    ]);
  }
});
