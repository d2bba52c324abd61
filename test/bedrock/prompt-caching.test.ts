import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { startGateway, type TestGateway } from "../support/gateway.ts";

/** The simulator refuses points where the provider does, and counts what is read and written. */
const targets = {
  "claude-45": `model: "us.anthropic.claude-sonnet-4-5-20250929-v1:0"`,
  "claude-46": `model: "us.anthropic.claude-sonnet-4-6"`,
  nova: `model: "us.amazon.nova-lite-v1:0"`,
  llama: `model: "us.meta.llama3-3-70b-instruct-v1:0"`,
  "auto-claude": `model: "us.anthropic.claude-sonnet-4-6", bedrock: { prompt_cache: auto }`,
  "auto-nova": `model: "us.amazon.nova-lite-v1:0", bedrock: { prompt_cache: auto }`,
  "auto-llama": `model: "us.meta.llama3-3-70b-instruct-v1:0", bedrock: { prompt_cache: auto }`,
} as const;
type Model = keyof typeof targets;

let gateway: TestGateway;

beforeAll(async () => {
  const entries = Object.entries(targets).map(
    ([alias, target]) => `
  ${alias}:
    kind: chat
    context_window: 128000
    max_output_tokens: 2000
    targets: [{ upstream: simulator, ${target} }]`,
  );
  gateway = await startGateway({ kind: "bedrock", sections: { models: entries.join("") } });
});

afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
});

interface Usage {
  readonly prompt_tokens: number;
  readonly prompt_tokens_details: {
    readonly cached_tokens: number;
    readonly audio_tokens: number;
    readonly cache_write_tokens?: number;
  };
}

async function ask(model: Model, body: object): Promise<Usage> {
  const response = await gateway.post("/v1/chat/completions", { model, ...body });
  if (response.status !== 200) throw new Error(`${response.status}: ${await response.text()}`);
  const { usage } = (await response.json()) as { usage: Usage };
  return usage;
}

let prompts = 0;
/** Words that no request before began with. */
function longText(words = 1_500): string {
  prompts += 1;
  return `Prompt ${prompts}. ${"word ".repeat(words)}`;
}

const control = { type: "ephemeral" };
const hour = { type: "ephemeral", ttl: "1h" };
const question = { role: "user", content: "Why whales?" };

/** Each way to mark a long prompt of which the end differs from call to call. */
const marked: Readonly<Record<string, (text: string) => object>> = {
  "a part": (text) => ({
    messages: [
      { role: "system", content: [{ type: "text", text, cache_control: control }] },
      question,
    ],
  }),
  "a message": (text) => ({
    messages: [{ role: "system", content: text, cache_control: control }, question],
  }),
  "a message of the user": (text) => ({
    messages: [
      { role: "user", content: text, cache_control: control },
      { role: "assistant", content: "Yes?" },
      question,
    ],
  }),
  "a message of the assistant": (text) => ({
    messages: [
      { role: "user", content: text },
      { role: "assistant", content: "Yes?", cache_control: control },
      question,
    ],
  }),
  "a breakpoint of OpenAI's": (text) => ({
    messages: [
      {
        role: "system",
        content: [{ type: "text", text, prompt_cache_breakpoint: { mode: "explicit" } }],
      },
      question,
    ],
  }),
};

describe.each(["claude-45", "nova"] as const)("%s", (model) => {
  test.each(Object.keys(marked))("keeps a prompt up to %s", async (way) => {
    const body = marked[way]?.(longText()) ?? {};
    const first = await ask(model, body);
    expect(first.prompt_tokens_details.cached_tokens).toBe(0);
    expect(first.prompt_tokens_details.cache_write_tokens).toBeGreaterThan(1_500);
    const second = await ask(model, body);
    expect(second.prompt_tokens_details.cached_tokens).toBe(
      first.prompt_tokens_details.cache_write_tokens ?? -1,
    );
    expect(second.prompt_tokens_details).not.toHaveProperty("cache_write_tokens");
    expect(second.prompt_tokens).toBe(first.prompt_tokens);
  });
});

function toolOf(description: string, more: { inner?: object; outer?: object } = {}): object {
  const definition = { name: "look", description, parameters: { type: "object" }, ...more.inner };
  return { type: "function", function: definition, ...more.outer };
}

test.each(["inner", "outer"] as const)(
  "tools are kept up to one marked at its %s",
  async (place) => {
    const tool = toolOf(longText(), { [place]: { cache_control: control } });
    const body = { tools: [tool], messages: [question] };
    expect((await ask("claude-45", body)).prompt_tokens_details.cache_write_tokens).toBeGreaterThan(
      1_500,
    );
    const again = { tools: [tool], messages: [{ role: "user", content: "Another question." }] };
    expect((await ask("claude-45", again)).prompt_tokens_details.cached_tokens).toBeGreaterThan(
      1_500,
    );
    // It would refuse a point there.
    expect((await ask("nova", body)).prompt_tokens_details.cached_tokens).toBe(0);
  },
);

test("an hour is asked for where it can be had, and never behind five minutes", async () => {
  for (const model of ["claude-45", "claude-46", "nova", "llama"] as const) {
    const messages = [
      { role: "system", content: longText(), cache_control: hour },
      { role: "user", content: longText(), cache_control: control },
      { role: "assistant", content: "Yes?", cache_control: hour },
      question,
    ];
    const { prompt_tokens_details: details } = await ask(model, { messages });
    expect(details.cache_write_tokens ?? 0).toBeGreaterThan(model === "llama" ? -1 : 3_000);
  }
});

test("of more than four marks the last four count, tools included", async () => {
  const tool = toolOf(longText(), { outer: { cache_control: hour } });
  const messages = Array.from({ length: 6 }, (_, index) => ({
    role: index % 2 === 0 ? "user" : "assistant",
    content: longText(300),
    cache_control: index < 3 ? control : hour,
  }));
  const { prompt_tokens_details: details } = await ask("claude-45", {
    tools: [tool],
    messages: [...messages, question],
  });
  expect(details.cache_write_tokens).toBeGreaterThan(3_000);
});

test.each([
  [{ type: "persistent" }, "messages[0].cache_control.type"],
  [{ type: "ephemeral", ttl: "2h" }, "messages[0].cache_control.ttl"],
  ["ephemeral", "messages[0].cache_control"],
])("a mark %p that says nothing is refused", async (mark, param) => {
  const messages = [{ ...question, cache_control: mark }];
  const response = await gateway.post("/v1/chat/completions", { model: "claude-45", messages });
  expect(response.status).toBe(400);
  const { error } = (await response.json()) as { error: { param: string } };
  expect(error.param).toBe(param);
});

describe("without any mark", () => {
  const system = { role: "system", content: longText() };
  const tools = [toolOf(longText())];

  test.each(["auto-claude", "auto-nova"] as const)(
    "%s keeps a conversation that grows, and its beginning",
    async (model) => {
      const messages: object[] = [{ role: "system", content: longText() }, question];
      let written = 0;
      let before = 0;
      for (let turn = 0; turn < 4; turn += 1) {
        const usage = await ask(model, { messages, tools });
        const details = usage.prompt_tokens_details;
        expect(details.cached_tokens).toBe(turn === 0 ? 0 : before);
        written = details.cache_write_tokens ?? 0;
        before += written;
        expect(written).toBeGreaterThan(0);
        messages.push({ role: "assistant", content: "Whales are." }, question);
      }
      // Another conversation begins with the same tools and instructions.
      const other = { messages: [messages[0], { role: "user", content: "And otters?" }], tools };
      const shared = (await ask(model, other)).prompt_tokens_details.cached_tokens;
      expect(shared).toBeGreaterThan(2_900);
    },
  );

  test("nothing is kept where the operator has not said so", async () => {
    for (const model of ["claude-46", "nova", "auto-llama"] as const) {
      const { prompt_tokens_details: details } = await ask(model, {
        messages: [system, question],
        tools,
      });
      expect(details).toEqual({ cached_tokens: 0, audio_tokens: 0 });
    }
  });

  test("the caller's own marks are the only ones", async () => {
    const body = { messages: [{ ...system, cache_control: control }, question], tools };
    const first = await ask("auto-claude", body);
    const second = await ask("auto-claude", body);
    const { cached_tokens: cached } = second.prompt_tokens_details;
    expect(cached).toBe(first.prompt_tokens_details.cache_write_tokens ?? -1);
    expect(cached).toBeLessThan(second.prompt_tokens);
  });
});

test("the ledger has what was written apart from what was read", async () => {
  const messages = [{ role: "system", content: longText(), cache_control: control }, question];
  const usages = [
    await ask("claude-45", { messages }),
    await ask("claude-45", { messages: [...messages, { role: "user", content: "And otters?" }] }),
  ];
  const rows = (await gateway.usage()).slice(0, 2).toReversed();
  expect(rows.map((row) => [row.cachedInputTokens, row.cacheWriteTokens])).toEqual(
    usages.map(({ prompt_tokens_details: details }) => [
      details.cached_tokens,
      details.cache_write_tokens,
    ]),
  );
  const streamed = await gateway.post("/v1/chat/completions", {
    model: "claude-45",
    messages: [{ role: "system", content: longText(), cache_control: control }, question],
    stream: true,
    stream_options: { include_usage: true },
  });
  expect(await streamed.text()).toContain('"cache_write_tokens":');
  await gateway.app.flushUsage();
  const response = await gateway.admin("GET", "/admin/v1/usage/calls?limit=1");
  const { data } = (await response.json()) as { data: { cache_write_tokens: number }[] };
  expect(data[0]?.cache_write_tokens).toBeGreaterThan(1_500);
});
