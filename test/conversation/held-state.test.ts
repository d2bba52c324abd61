import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { NotingProvider } from "./noting-provider.ts";

/** What an account named once; another one tries to use it. */
const secret = "id-of-account-a";

let provider: NotingProvider;
let gateway: TestGateway;
let otherKey: string;
beforeAll(async () => {
  provider = new NotingProvider();
  gateway = await startGateway();
  otherKey = (await gateway.createKey({ account: "another-account" })).text;
  const { data: accounts } = (await (await gateway.admin("GET", "/admin/v1/accounts")).json()) as {
    readonly data: readonly { readonly id: string; readonly name: string }[];
  };
  const owner = accounts.find(({ name }) => name !== "another-account")?.id;
  const fields =
    "[container, mcp_servers, previous_response_id, container_upload, custom, source, " +
    "extra_body, thinking_blocks, cache_control]";
  const upstreams = (["openai", "anthropic"] as const).flatMap((kind) =>
    ["shared", "owned", "closed"].map((use) => {
      const forwarded = use === "closed" ? "" : `forward_fields: ${fields}, `;
      const account = use === "owned" ? `state_account: ${owner}` : "";
      return `\n  ${kind}-${use}: ${provider.upstream(kind, forwarded + account)}`;
    }),
  );
  const models = ["openai", "anthropic"].flatMap((kind) =>
    ["shared", "owned", "closed"].map((use) => {
      const target = `[{ upstream: ${kind}-${use}, model: claude-opus-4-8 }]`;
      const sizes = "context_window: 9000, max_output_tokens: 1000";
      return `\n  ${kind}-${use}: { kind: chat, ${sizes}, targets: ${target} }`;
    }),
  );
  await gateway.reconfigure({ upstreams: upstreams.join(""), models: models.join("") });
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await provider[Symbol.asyncDispose]();
});

interface Asked {
  readonly path: string;
  readonly body: object;
}

async function send({ path, body }: Asked, model: string, key = gateway.key) {
  provider.received = "";
  const headers = { authorization: `Bearer ${key}` };
  const response = await gateway.post(path, { model, ...body }, { headers });
  return { status: response.status, text: await response.text(), sent: provider.received };
}

const user = (...content: object[]) => ({ role: "user", content });
const text = { type: "text", text: "Hi" };
const chat = (body: object): Asked => ({
  path: "/v1/chat/completions",
  body: { messages: [user(text)], ...body },
});
const messages = (body: object, path = "/v1/messages"): Asked => ({
  path,
  body: {
    messages: [user(text)],
    ...(path === "/v1/messages" && { max_tokens: 10 }),
    ...body,
  },
});
const call = { id: "c", type: "function", function: { name: "look", arguments: "{}" } };
const called = (tool_call: object) => ({
  messages: [
    user(text),
    { role: "assistant", content: null, tool_calls: [tool_call] },
    { role: "tool", tool_call_id: "c", content: "ok" },
  ],
});
const look = { name: "look", parameters: { type: "object", properties: {} } };
const tool = (beside: object, within: object = {}) => ({
  tools: [{ type: "function", function: { ...look, ...within }, ...beside }],
});
const schema = { name: "a", schema: { type: "object" } };

/** Each way into an upstream: the request, and the field that is named. */
const intoOpenAi: Record<string, readonly [Asked, string]> = {
  "a file": [
    chat({ messages: [user(text, { type: "file", file: { file_id: secret } })] }),
    "messages[0].content[1].file.file_id",
  ],
  "a file beside its data": [
    chat({
      messages: [
        user(text, {
          type: "file",
          file: { file_id: secret, filename: "a", file_data: "data:application/pdf;base64,AAAA" },
        }),
      ],
    }),
    "messages[0].content[1].file.file_id",
  ],
  "a file in the result of a tool": [
    chat({
      messages: [
        user(text),
        { role: "assistant", content: null, tool_calls: [call] },
        {
          role: "tool",
          tool_call_id: "c",
          content: [{ type: "file", file: { file_id: secret } }],
        },
      ],
    }),
    "messages[2].content[0].file.file_id",
  ],
  "the id of a file in an image": [
    chat({
      messages: [
        user({
          type: "image_url",
          image_url: { url: "data:image/png;base64,iVBORw0KGgo=", file_id: secret },
        }),
      ],
    }),
    "messages[0].content[0].file_id",
  ],
  "an earlier spoken answer": [
    chat({ messages: [user(text), { role: "assistant", audio: { id: secret } }, user(text)] }),
    "messages[1].audio.id",
  ],
  "a voice of its own": [
    chat({ modalities: ["text", "audio"], audio: { voice: { id: secret }, format: "wav" } }),
    "audio.voice",
  ],
  "a field in a prediction": [
    chat({ prediction: { type: "content", content: [{ ...text, file_id: secret }] } }),
    "prediction.content[0].file_id",
  ],
  "a field of the options of a search": [
    chat({ web_search_options: { vector_store_ids: [secret] } }),
    "web_search_options.vector_store_ids",
  ],
  "a field of moderation": [
    chat({ moderation: { model: "m", "conversation-id": secret } }),
    "moderation.conversation-id",
  ],
  "a field beside a tool": [chat(tool({ container: { id: secret } })), "tools[0].container"],
  "a field within a tool": [
    chat(tool({}, { sources: [{ vectorStoreIds: [secret] }] })),
    "tools[0].function.sources[0].vectorStoreIds",
  ],
  "a server of tools": [
    chat(tool({ serverUrl: `https://${secret}.example` })),
    "tools[0].serverUrl",
  ],
  "a field of the form of the answer": [
    chat({ response_format: { type: "json_schema", json_schema: { ...schema, thread: secret } } }),
    "response_format.json_schema.thread",
  ],
  "a field beside the form of the answer": [
    chat({
      messages: [user({ type: "text", text: "JSON" })],
      response_format: { type: "json_object", thread_id: secret },
    }),
    "response_format.thread_id",
  ],
  "a field that the operator forwards": [
    chat({ previous_response_id: secret }),
    "previous_response_id",
  ],
  "servers of tools that the operator forwards": [
    chat({ mcp_servers: [{ url: `https://${secret}.example` }] }),
    "mcp_servers",
  ],
  "a cache at Google": [
    chat({ extra_body: { google: { cachedContent: secret } } }),
    "extra_body.google.cachedContent",
  ],
  "a container of a part": [
    chat({ messages: [user({ ...text, container: secret })] }),
    "messages[0].content[0].container",
  ],
  "a container of a message": [
    chat({ messages: [{ ...user(text), container: secret }] }),
    "messages[0].container",
  ],
  "a container of a call": [
    chat(called({ ...call, container: secret })),
    "messages[1].tool_calls[0].container",
  ],
  "a field within a mark": [
    chat({
      messages: [user({ ...text, cache_control: { type: "ephemeral", file_id: secret } })],
    }),
    "messages[0].content[0].file_id",
  ],
  "a detail of a thought": [
    chat({
      messages: [
        user(text),
        {
          role: "assistant",
          content: "a",
          thinking_blocks: [{ type: "thinking", thinking: "a", file_id: secret }],
        },
        user(text),
      ],
    }),
    "messages[1].thinking_blocks[0].file_id",
  ],
};

const upload = { type: "container_upload", file_id: secret };
const into = {
  container: [messages({ container: secret }), "container"],
  "a container with skills": [
    messages({ container: { id: secret, skills: [{ skill_id: secret }] } }),
    "container",
  ],
  "servers of tools": [
    messages({ mcp_servers: [{ type: "url", url: `https://${secret}.example`, name: "a" }] }),
    "mcp_servers",
  ],
  "a block with a file": [
    messages({ messages: [user(text, upload)] }),
    "messages[0].content[1].file_id",
  ],
  "a block in the result of a tool": [
    messages({
      messages: [
        user(text),
        {
          role: "assistant",
          content: [{ type: "tool_use", id: "c", name: "look", input: {} }],
        },
        user({ type: "tool_result", tool_use_id: "c", content: [text, upload] }),
      ],
      tools: [{ name: "look", input_schema: { type: "object" } }],
    }),
    "messages[2].content[0].content[1].file_id",
  ],
  "a field of a block": [
    messages({ messages: [user({ ...text, container: { id: secret } })] }),
    "messages[0].content[0].container",
  ],
  "a field of a tool": [
    messages({
      tools: [{ name: "look", input_schema: { type: "object" }, custom: { file_id: secret } }],
    }),
    "tools[0].custom.file_id",
  ],
  "a count of tokens": [
    messages({ messages: [user(text, upload)] }, "/v1/messages/count_tokens"),
    undefined,
  ],
} satisfies Record<string, readonly [Asked, string | undefined]>;
const intoAnthropic: Record<string, readonly [Asked, string | undefined]> = into;

const ways = [
  ...Object.entries(intoOpenAi).map(([name, way]) => [name, "openai", ...way] as const),
  ...Object.entries(intoAnthropic).map(([name, way]) => [name, "anthropic", ...way] as const),
];

describe.each(ways)("%s, into %s,", (_, kind, asked, param) => {
  test("of another account never reaches an upstream", async () => {
    for (const [use, key] of [
      ["shared", otherKey],
      ["shared", gateway.key],
      ["owned", otherKey],
    ] as const) {
      const { status, text: answer, sent } = await send(asked, `${kind}-${use}`, key);
      expect(sent).not.toContain(secret);
      // A count is estimated where the upstream cannot count.
      if (param === undefined) continue;
      expect([status, sent]).toEqual([400, ""]);
      expect(answer).toContain(`'${param}' names what a provider holds`);
    }
  });

  test("of the account that the upstream is for is sent on", async () => {
    const { status, sent } = await send(asked, `${kind}-owned`);
    expect(status).toBe(200);
    expect(sent).toContain(secret);
  });
});

test("Responses sends none of its own on", async () => {
  const hosted = { type: "file_search", vector_store_ids: [secret] };
  const server = { type: "mcp", server_label: "a", server_url: `https://${secret}.example` };
  const request = {
    path: "/v1/responses",
    body: {
      input: [
        { role: "user", content: [{ type: "input_text", text: "Hi", file_id: secret }] },
        { type: "code_interpreter_call", id: "ci_1", container_id: secret, code: "1" },
        { type: "mcp_approval_response", approval_request_id: secret, approve: true },
      ],
      container: secret,
      mcp_servers: [{ url: secret }],
      tools: [hosted, server, { type: "function", ...look, container: secret }],
    },
  };
  for (const model of ["openai-shared", "anthropic-shared", "openai-owned"]) {
    const { status, sent } = await send(request, model);
    expect(status).toBe(200);
    expect(sent).not.toContain(secret);
  }
  for (const part of [
    { type: "input_file", file_id: secret },
    { type: "input_image", file_id: secret },
  ]) {
    const body = { input: [{ role: "user", content: [part] }] };
    const { status, text: answer, sent } = await send({ ...request, body }, "openai-owned");
    expect([status, sent]).toEqual([400, ""]);
    expect(answer).toContain("input[0].content[0].file_id");
  }
});

test("what only looks like such a field is sent on", async () => {
  const named = { file_id: { type: "string" }, container: { type: "object" } };
  const parameters = { type: "object", properties: named };
  const inputs = JSON.stringify({ file_id: "file-1", thread_id: "t" });
  const request = chat({
    ...called({ ...call, function: { name: "look", arguments: inputs } }),
    tools: [{ type: "function", function: { name: "look", parameters } }],
    response_format: { type: "json_schema", json_schema: { ...schema, schema: parameters } },
    metadata: { thread_id: "t", conversation_id: "c" },
    audio: { voice: "alloy", format: "wav" },
  });
  const { status, sent } = await send(request, "openai-shared");
  expect(status).toBe(200);
  for (const word of ["file-1", "thread_id", "conversation_id", "alloy"]) {
    expect(sent).toContain(word);
  }
});

test("what stays here breaks no request", async () => {
  const inChat = chat({ previous_response_id: secret, thread: secret, container: { id: secret } });
  const inMessages = messages({
    container: secret,
    mcp_servers: [{ url: secret }],
    messages: [user({ type: "text", text: `"file_id":"${secret}x"` }, upload)],
  });
  for (const [asked, model] of [
    [inChat, "openai-closed"],
    [inMessages, "openai-shared"],
    [inMessages, "anthropic-closed"],
    [inChat, "anthropic-shared"],
  ] as const) {
    const { status, sent } = await send(asked, model);
    expect(status).toBe(200);
    expect(sent.replaceAll(`${secret}x`, "")).not.toContain(secret);
  }
});
