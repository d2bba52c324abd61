import { afterAll, beforeAll, expect, test } from "bun:test";
import { startGateway, type TestGateway } from "../support/gateway.ts";

const models = {
  budget: "us.anthropic.claude-sonnet-4-20250514-v1:0",
  adaptive: "us.anthropic.claude-opus-4-6-v1",
  omitted: "global.anthropic.claude-opus-4-7",
  unasked: "global.anthropic.claude-opus-5",
} as const;

let gateway: TestGateway;
beforeAll(async () => {
  const sections = Object.entries(models).map(([alias, model]) => {
    return `${alias}: { kind: chat, context_window: 200000, max_output_tokens: 64000, targets: [{ model: "${model}", upstream: simulator }] }`;
  });
  gateway = await startGateway({
    kind: "bedrock",
    sections: { models: `{ ${sections.join(", ")} }` },
  });
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
});

interface Usage {
  readonly completion_tokens: number;
  readonly completion_tokens_details: { readonly reasoning_tokens: number };
}

async function usageOf(model: string, asked: object): Promise<Usage> {
  const messages = [{ role: "user", content: "Why is the sky blue?" }];
  const body = { model, messages, max_completion_tokens: 4_000, ...asked };
  const response = await gateway.post("/v1/chat/completions", body);
  const text = await response.text();
  expect(response.status).toBe(200);
  const last = "stream" in asked ? text.split("\n\n").at(-3)?.slice("data: ".length) : text;
  const { usage }: { usage: Usage } = JSON.parse(last ?? "");
  return usage;
}

const streamed = { stream: true, stream_options: { include_usage: true } };

test.each(Object.keys(models))("thoughts of a model of kind %s are counted", async (model) => {
  const effort = model === "unasked" ? {} : { reasoning_effort: "low" };
  for (const form of [{}, streamed]) {
    const { completion_tokens: all, completion_tokens_details: parts } = await usageOf(model, {
      ...effort,
      ...form,
    });
    expect(parts.reasoning_tokens).toBeGreaterThan(0);
    expect(parts.reasoning_tokens).toBeLessThan(all);
  }
});

test("a model that does not think has no thoughts to count", async () => {
  const { completion_tokens_details: parts } = await usageOf("budget", {});
  expect(parts.reasoning_tokens).toBe(0);
});
