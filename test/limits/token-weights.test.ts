import { expect, test } from "bun:test";
import { errorOf } from "../support/bodies.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { describeWithValkey, valkeyOfTests } from "../support/valkey-server.ts";

const models = `
  claude:
    kind: chat
    context_window: 200000
    max_output_tokens: 2000
    targets: [{ upstream: simulator, model: "us.anthropic.claude-sonnet-4-6" }]
  llama:
    kind: chat
    context_window: 200000
    max_output_tokens: 2000
    targets: [{ upstream: simulator, model: "us.meta.llama3-3-70b-instruct-v1:0" }]`;

/** About 50,000 tokens that the provider caches, and a short question. */
const prefix = "word ".repeat(40_000);
const agentCall = (question: string) => ({
  model: "claude",
  max_tokens: 50,
  messages: [
    {
      role: "system",
      content: [{ type: "text", text: prefix, cache_control: { type: "ephemeral" } }],
    },
    { role: "user", content: question },
  ],
});

async function callsBefore429(gateway: TestGateway, most: number): Promise<number> {
  for (let count = 0; count < most; count += 1) {
    const response = await gateway.post("/v1/chat/completions", agentCall(`Question ${count}`));
    await response.text();
    if (response.status === 429) return count;
    expect(response.status).toBe(200);
  }
  return most;
}

function startWith(plans: string, more: Readonly<Record<string, string>> = {}) {
  const sections = { models, plans: `{ standard: { ${plans} } }`, ...more };
  return startGateway({ kind: "bedrock", key: { plan: "standard" }, sections });
}

test("an agent that sends a cached prefix again gets what the provider gives it", async () => {
  await using plain = await startWith("queue_timeout: 0s");
  const without = await callsBefore429(plain, 40);
  expect(without).toBeGreaterThan(1);
  expect(without).toBeLessThan(15);
  await using weighted = await startWith("token_weights: bedrock");
  const first = await weighted.post("/v1/chat/completions", agentCall("First"));
  const before = Number(first.headers.get("x-ratelimit-remaining-tokens"));
  await first.text();
  expect(await callsBefore429(weighted, 40)).toBe(40);
  const rows = await weighted.usage();
  // The ledger has what the provider counted.
  for (const row of rows) expect(row.inputTokens).toBeGreaterThan(39_000);
  expect(rows.filter((row) => row.cachedInputTokens > 39_000)).toHaveLength(40);
  // The last answer says what the plan has left: the prefix counted once.
  const last = await weighted.post("/v1/chat/completions", agentCall("Last"));
  await last.text();
  const left = Number(last.headers.get("x-ratelimit-remaining-tokens"));
  expect(before).toBeGreaterThan(0);
  const fresh = rows.reduce((sum, row) => sum + row.inputTokens - row.cachedInputTokens, 0);
  const output = rows.reduce((sum, row) => sum + row.outputTokens * 5, 0);
  expect(500_000 - left).toBeGreaterThanOrEqual(fresh + output);
  expect(500_000 - left).toBeLessThan(fresh + output + 110_000);
});

test("a call is refused by what its tokens may count, in numbers of the plan", async () => {
  const limits = "requests_per_minute: 100, tokens_per_minute: 1000, overrun_factor: 50";
  await using gateway = await startWith(
    `${limits}, token_weights: { cached_input: 0, cache_write: 1.25, output: 5 }`,
  );
  const ask = (max_tokens: number) =>
    gateway.post("/v1/chat/completions", {
      model: "llama",
      max_tokens,
      messages: [{ role: "user", content: "echo: hi" }],
    });
  const large = await ask(300);
  expect(large.status).toBe(429);
  expect(large.headers.get("x-should-retry")).toBe("false");
  const { message } = await errorOf(large);
  const asked = Number(/Limit 1000, Requested (\d+) \(weighted, estimated\)\./.exec(message)?.[1]);
  expect(asked).toBeGreaterThan(1_500);
  expect(asked).toBeLessThan(1_700);
  const id = large.headers.get("x-request-id");
  const found = await gateway.admin("GET", `/admin/v1/refusals/${id}`);
  const refusal = (await found.json()) as { summary: string; rule: string; window: object };
  expect(refusal).toMatchObject({
    rule: "request_too_large",
    window: { limit: 1_000, requested: asked },
  });
  expect(refusal.summary).toContain("input counts up to 1.25, and one of output 5");
  const small = await ask(150);
  expect(small.status).toBe(200);
  await small.text();
});

test("parallel calls never use more than the weighted limit, streamed or not", async () => {
  const limit = 3_000;
  const weights = { cached: 0.1, write: 1.25, output: 5 };
  const limits = `requests_per_minute: 1000, tokens_per_minute: ${limit}`;
  await using gateway = await startWith(
    `${limits}, token_weights: { cached_input: 0.1, cache_write: 1.25, output: 5 }`,
  );
  const statuses = await Promise.all(
    Array.from({ length: 60 }, async (_, index) => {
      const response = await gateway.post("/v1/chat/completions", {
        model: index % 3 === 0 ? "claude" : "llama",
        max_tokens: 40 + index,
        stream: index % 2 === 0,
        messages: [{ role: "user", content: "count: 500" }],
      });
      await response.text();
      return response.status;
    }),
  );
  expect(statuses).toContain(200);
  expect(statuses).toContain(429);
  const rows = await gateway.usage();
  const used = rows.reduce((sum, row) => {
    const { inputTokens, cachedInputTokens, cacheWriteTokens = 0, outputTokens } = row;
    const fresh = inputTokens - cachedInputTokens - cacheWriteTokens;
    const input = fresh + cachedInputTokens * weights.cached + cacheWriteTokens * weights.write;
    return sum + input + outputTokens * weights.output;
  }, 0);
  expect(used).toBeGreaterThan(limit / 4);
  expect(used).toBeLessThanOrEqual(limit);
});

test("output counts by the model of the provider", async () => {
  const limits = "requests_per_minute: 100, tokens_per_minute: 1000";
  await using gateway = await startWith(`${limits}, token_weights: bedrock`);
  const statusOf = async (model: string) => {
    const messages = [{ role: "user", content: "echo: hi" }];
    const body = { model, max_tokens: 300, messages };
    const response = await gateway.post("/v1/chat/completions", body);
    await response.text();
    return response.status;
  };
  expect(await statusOf("claude")).toBe(429);
  expect(await statusOf("llama")).toBe(200);
});

describeWithValkey(() => {
  const valkey = valkeyOfTests();

  test("weights hold over a server that processes share", async () => {
    await using gateway = await startGateway({
      kind: "bedrock",
      processes: 2,
      key: { plan: "standard" },
      sections: {
        models,
        plans: `{ standard: { token_weights: bedrock } }`,
        limits: `{ store: "${valkey.server.url}", timeout: 5s }`,
      },
    });
    expect(await callsBefore429(gateway, 40)).toBe(40);
    await gateway.reconfigure({ plans: `{ standard: { queue_timeout: 0s } }` });
    // What was counted with weights stays, and from now on each token counts one.
    expect(await callsBefore429(gateway, 40)).toBeLessThan(15);
  });
});
