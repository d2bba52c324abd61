import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { formatProblems, parseConfig } from "../../src/config/load.ts";
import { type AnthropicGateway, startAnthropicGateway } from "./anthropic-gateway.ts";

const sonnet = "claude-sonnet-4-5";
let world: AnthropicGateway;

beforeAll(async () => {
  world = await startAnthropicGateway({ models: [sonnet, "claude-opus-5-5"] });
});
afterAll(() => world[Symbol.asyncDispose]());

const user = (content: string) => ({ role: "user", content });
const weather = {
  type: "function",
  function: {
    name: "weather.now",
    parameters: { type: "object", properties: { city: { type: "string" } } },
  },
};

async function chat(body: object): Promise<Response> {
  const response = await world.gateway.post("/v1/chat/completions", { model: sonnet, ...body });
  return response;
}

describe("callers of chat", () => {
  test("get an answer, its usage and its finish reason", async () => {
    const response = await chat({ messages: [user("echo: one two")] });
    expect(response.status).toBe(200);
    const body = (await response.json()) as Record<string, unknown>;
    expect(body).toMatchObject({
      choices: [{ message: { content: "one two" }, finish_reason: "stop" }],
    });
    const [entry] = world.api.truth.entries.slice(-1);
    const usage = body["usage"] as Record<string, number>;
    expect(usage["prompt_tokens"]).toBe(entry?.promptTokens);
    expect(usage["completion_tokens"]).toBe(entry?.completionTokens);
  });

  test("get the same in a stream", async () => {
    const response = await chat({
      messages: [user("echo: one two")],
      stream: true,
      stream_options: { include_usage: true },
    });
    const text = await response.text();
    const words = [...text.matchAll(/"content":"([^"]*)"/g)].map(([, word]) => word);
    expect(words.join("")).toBe("one two");
    expect(text).toContain('"finish_reason":"stop"');
    expect(text).toMatch(/"prompt_tokens":[1-9]/);
    expect(text).toEndWith("data: [DONE]\n\n");
  });

  test.each([false, true])(
    "get calls of tools under their own names, streamed %p",
    async (stream) => {
      const messages = [user("Weather in Rome?")];
      const asked = { messages, tools: [weather], tool_choice: "required", stream };
      const response = await chat(asked);
      const text = await response.text();
      expect(response.status).toBe(200);
      expect(text).toContain('"name":"weather.now"');
      expect(text).toContain("tool_calls");
    },
  );

  test("a history of calls, with several results and an image, reaches the model", async () => {
    const call = (id: string) => ({
      id,
      type: "function",
      function: { name: "weather.now", arguments: '{"city":"Rome"}' },
    });
    const response = await chat({
      messages: [
        { role: "system", content: "Be brief." },
        user("Weather?"),
        { role: "assistant", content: "", tool_calls: [call("functions.a:1"), call("b")] },
        { role: "tool", tool_call_id: "b", content: "21" },
        { role: "tool", tool_call_id: "functions.a:1", content: "22" },
        {
          role: "user",
          content: [
            { type: "text", text: "echo: 21" },
            { type: "image_url", image_url: { url: "data:image/png;base64,iVBORw0KGgo=" } },
            { type: "file", file: { filename: "a.md", file_data: "data:;base64,IyBB" } },
          ],
        },
      ],
      tools: [weather],
      tool_choice: "none",
    });
    expect(await response.json()).toMatchObject({ choices: [{ message: { content: "21" } }] });
  });

  test("get JSON of a schema", async () => {
    const schema = {
      type: "object",
      properties: { city: { type: "string" } },
      required: ["city"],
      additionalProperties: false,
    };
    const response = await chat({
      messages: [user("Where?")],
      response_format: { type: "json_schema", json_schema: { name: "city", schema } },
    });
    const body = (await response.json()) as { choices: { message: { content: string } }[] };
    expect(JSON.parse(body.choices[0]?.message.content ?? "")).toHaveProperty("city");
  });

  test("a stop sequence, a cap and a refusal end the answer with their reasons", async () => {
    const reasons = await Promise.all(
      [
        { messages: [user("echo: one END two")], stop: ["END"] },
        { messages: [user("count: 100")], max_tokens: 5 },
        { messages: [user("refuse: this")] },
      ].map(async (body) => {
        const response = await chat(body);
        const { choices } = (await response.json()) as { choices: { finish_reason: string }[] };
        return choices[0]?.finish_reason;
      }),
    );
    expect(reasons).toEqual(["stop", "length", "content_filter"]);
  });

  test("sampling that the newest models refuse is refused by its name", async () => {
    const messages = [user("echo: x")];
    const response = await chat({ model: "claude-opus-5-5", messages, temperature: 0.5 });
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: { param: "temperature" } });
  });
});

describe("callers of Messages", () => {
  test("get the stop sequence, and the usage split as they know it", async () => {
    const response = await world.gateway.post("/v1/messages", {
      model: sonnet,
      max_tokens: 128_000,
      messages: [user("echo: one END two")],
      cache_control: { type: "ephemeral" },
      stop_sequences: ["END", "x"],
    });
    expect(response.status).toBe(200);
    const body = (await response.json()) as { usage: Record<string, number> };
    expect(body).toMatchObject({
      content: [{ type: "text", text: "one " }],
      stop_reason: "stop_sequence",
      stop_sequence: "END",
    });
    const { promptTokens } = world.api.truth.entries.at(-1) ?? { promptTokens: 0 };
    const { input_tokens: input = 0, cache_read_input_tokens: cached = 0 } = body.usage;
    expect(cached).toBe(Math.floor(promptTokens / 4));
    expect(input + cached).toBe(promptTokens);
    expect(response.headers.get("x-sluice-adjusted-parameters")).toContain("max_tokens=64000");
  });

  test("get exact counts", async () => {
    const asked = { model: sonnet, messages: [user("one two three")] };
    const response = await world.gateway.post("/v1/messages/count_tokens", asked);
    const { input_tokens: counted } = (await response.json()) as { input_tokens: number };
    expect(response.headers.get("x-sluice-estimate")).toBeNull();
    expect(world.api.truth.entries.at(-1)).toMatchObject({
      kind: "count-tokens",
      promptTokens: counted,
    });
  });
});

describe("the configuration", () => {
  const file = (key: string, more = ""): string => `
environments: [{ name: test, hosts: ["*"], models: ["*"] }]
upstreams: { claude: { kind: anthropic, api_key: "${key}"${more} } }
models:
  m: { kind: chat, context_window: 1000, targets: [{ upstream: claude, model: claude-opus-5 }] }
`;
  const problemsOf = (text: string): string => {
    const result = parseConfig(text, { name: "file", env: {} });
    return result.ok ? "" : formatProblems("file", result.problems);
  };

  test("needs a key only", () => {
    expect(problemsOf(file("sk-ant-api03-x"))).toBe("");
  });

  test("refuses tokens of subscriptions, and does not show them", () => {
    const problems = problemsOf(file("sk-ant-oat01-secret"));
    expect(problems).toContain("upstreams.claude.api_key: must be an API key");
    expect(problems).not.toContain("secret");
  });

  test("refuses an address with the path of the endpoint", () => {
    const address = ', base_url: "https://api.anthropic.com/v1"';
    expect(problemsOf(file("sk-ant-api03-x", address))).toContain("/v1/messages is added");
  });
});
