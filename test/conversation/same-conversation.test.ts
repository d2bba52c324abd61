import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { NotingProvider } from "./noting-provider.ts";

/** One conversation, as a caller of each dialect writes it. */
const png =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const url = `data:image/png;base64,${png}`;
const parameters = {
  type: "object",
  properties: { city: { type: "string" } },
  required: ["city"],
  additionalProperties: false,
};
const schema = {
  type: "object",
  properties: { warmest: { type: "string" } },
  required: ["warmest"],
  additionalProperties: false,
};
const cities = [
  { id: "call_1", input: { city: "Kyiv" }, thought: "One by one.", result: "18 degrees" },
  { id: "call_2", input: { city: "Lviv" }, thought: "Now the other.", result: "21 degrees" },
];
const about = "Gives the weather of a city.";

const dialects = {
  chat: {
    path: "/v1/chat/completions",
    body: {
      messages: [
        { role: "system", content: "Be brief." },
        {
          role: "user",
          content: [
            { type: "text", text: "Which of these is warmer?" },
            { type: "image_url", image_url: { url } },
          ],
        },
        ...cities.flatMap(({ id, input, thought, result }) => [
          {
            role: "assistant",
            content: "Let me look.",
            reasoning_content: thought,
            tool_calls: [
              {
                id,
                type: "function",
                function: { name: "look", arguments: JSON.stringify(input) },
              },
            ],
          },
          { role: "tool", tool_call_id: id, content: result },
        ]),
        { role: "user", content: "So?" },
      ],
      tools: [{ type: "function", function: { name: "look", description: about, parameters } }],
      tool_choice: "auto",
      parallel_tool_calls: false,
      response_format: { type: "json_schema", json_schema: { name: "answer", schema } },
      reasoning_effort: "low",
      max_completion_tokens: 500,
      user: "jane",
    },
  },
  responses: {
    path: "/v1/responses",
    body: {
      instructions: "Be brief.",
      input: [
        {
          role: "user",
          content: [
            { type: "input_text", text: "Which of these is warmer?" },
            { type: "input_image", image_url: url },
          ],
        },
        ...cities.flatMap(({ id, input, thought, result }, index) => [
          {
            type: "reasoning",
            id: `rs_${index}`,
            summary: [{ type: "summary_text", text: thought }],
          },
          { role: "assistant", content: [{ type: "output_text", text: "Let me look." }] },
          { type: "function_call", call_id: id, name: "look", arguments: JSON.stringify(input) },
          { type: "function_call_output", call_id: id, output: result },
        ]),
        { role: "user", content: "So?" },
      ],
      tools: [{ type: "function", name: "look", description: about, parameters }],
      tool_choice: "auto",
      parallel_tool_calls: false,
      text: { format: { type: "json_schema", name: "answer", schema } },
      reasoning: { effort: "low" },
      max_output_tokens: 500,
      user: "jane",
      store: false,
    },
  },
  messages: {
    path: "/v1/messages",
    body: {
      system: "Be brief.",
      messages: [
        {
          role: "user",
          content: [
            { type: "text", text: "Which of these is warmer?" },
            { type: "image", source: { type: "base64", media_type: "image/png", data: png } },
          ],
        },
        ...cities.flatMap(({ id, input, thought, result }) => [
          {
            role: "assistant",
            content: [
              { type: "thinking", thinking: thought },
              { type: "text", text: "Let me look." },
              { type: "tool_use", id, name: "look", input },
            ],
          },
          { role: "user", content: [{ type: "tool_result", tool_use_id: id, content: result }] },
        ]),
        { role: "user", content: "So?" },
      ],
      tools: [{ name: "look", description: about, input_schema: parameters }],
      tool_choice: { type: "auto", disable_parallel_tool_use: true },
      output_config: { format: { type: "json_schema", schema }, effort: "low" },
      thinking: { type: "adaptive", display: "summarized" },
      max_tokens: 500,
      metadata: { user_id: "jane" },
    },
  },
} as const;
type Dialect = keyof typeof dialects;
const names = ["chat", "responses", "messages"] as const satisfies readonly Dialect[];

const kinds = ["openai", "anthropic", "bedrock"] as const;
type Kind = (typeof kinds)[number];
const identifiers = {
  openai: "gpt-5.1",
  anthropic: "claude-opus-4-8",
  bedrock: "us.anthropic.claude-sonnet-4-20250514-v1:0",
};

let provider: NotingProvider;
let gateway: TestGateway;
beforeAll(async () => {
  provider = new NotingProvider();
  const upstreams = kinds.map((kind) => `\n  ${kind}: ${provider.upstream(kind)}`);
  const models = kinds.map((kind) => {
    const target = `[{ upstream: ${kind}, model: "${identifiers[kind]}" }]`;
    const sizes = "context_window: 200000, max_output_tokens: 64000";
    return `\n  ${kind}: { kind: chat, ${sizes}, targets: ${target} }`;
  });
  gateway = await startGateway({
    sections: { upstreams: upstreams.join(""), models: models.join("") },
  });
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await provider[Symbol.asyncDispose]();
});

async function sentOf(dialect: Dialect, kind: Kind, key = gateway.key): Promise<unknown> {
  const { path, body } = dialects[dialect];
  provider.received = "";
  const headers = { authorization: `Bearer ${key}` };
  const response = await gateway.post(path, { model: kind, ...body }, { headers });
  const answer = await response.text();
  if (response.status !== 200) throw new Error(`${response.status}: ${answer}`);
  return JSON.parse(provider.received);
}

describe.each(kinds)("through each dialect, a conversation reaches kind %s", (kind) => {
  test("as the same request", async () => {
    const inChat = await sentOf("chat", kind);
    expect(JSON.stringify(inChat)).toContain("21 degrees");
    expect(await sentOf("responses", kind)).toEqual(inChat);
    expect(await sentOf("messages", kind)).toEqual(inChat);
  });

  test("with the same row in the ledger, apart from the dialect", async () => {
    for (const dialect of names) await sentOf(dialect, kind);
    const rows = (await gateway.usage()).slice(0, names.length).toReversed();
    expect(rows.map(({ dialect }) => dialect)).toEqual([...names]);
    const alike = rows.map((row) => ({ ...row, ...differing }));
    for (const row of alike) expect(JSON.stringify(row)).toBe(JSON.stringify(alike[0]));
    // Texts are estimated by the length of the body, in which each dialect has words of its own.
    const reserved = rows.map(({ reservedTokens = 0 }) => reservedTokens);
    expect(Math.max(...reserved)).toBeLessThan(1.25 * Math.min(...reserved));
  });

  test("with the same effect on limits", async () => {
    const left: (readonly [requests: string | null, tokens: number])[] = [];
    for (const dialect of names) {
      const limits = { requestsPerMinute: 3, tokensPerMinute: 10_000 };
      const { text } = await gateway.createKey({ limits });
      await sentOf(dialect, kind, text);
      await sentOf(dialect, kind, text);
      // The last call is the same in each case, so its headers tell what the others have left.
      const headers = { authorization: `Bearer ${text}` };
      const messages = [{ role: "user", content: "Hi" }];
      const asked = { model: kind, messages, max_completion_tokens: 1 };
      const last = await gateway.post("/v1/chat/completions", asked, { headers });
      expect(last.status).toBe(200);
      await last.text();
      left.push([
        last.headers.get("x-ratelimit-remaining-requests"),
        Number(last.headers.get("x-ratelimit-remaining-tokens")),
      ]);
    }
    expect(left.map(([requests]) => requests)).toEqual(["0", "0", "0"]);
    const tokens = left.map(([, each]) => each);
    expect(Math.min(...tokens)).toBeGreaterThan(9_000);
    expect(Math.max(...tokens) - Math.min(...tokens)).toBeLessThan(50);
  });
});

const differing = {
  id: "",
  dialect: "",
  startedAt: 0,
  durationMs: 0,
  firstEventMs: 0,
  reservedTokens: 0,
};
