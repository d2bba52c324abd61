import { afterAll, beforeAll, expect, test } from "bun:test";
import { startGateway, type TestGateway } from "../support/gateway.ts";

let gateway: TestGateway;

beforeAll(async () => {
  const alias = (name: string, trace: string) => `
  ${name}:
    kind: chat
    context_window: 32000
    targets:
      - upstream: simulator
        model: us.anthropic.claude-sonnet-4-20250514-v1:0
        bedrock: { guardrail: { identifier: abc123, version: "1", trace: ${trace} } }`;
  const models = alias("traced", "enabled") + alias("untraced", "disabled");
  const failing = `
  failing:
    kind: chat
    context_window: 32000
    fallbacks: [traced]
    targets: [{ upstream: simulator, model: no-such-model }]`;
  gateway = await startGateway({
    kind: "bedrock",
    sections: {
      models: models + failing,
      environments: `[{ name: test, hosts: ["*"], models: ["*"], aliases: { "guarded-*": traced } }]`,
    },
  });
});
afterAll(async () => gateway[Symbol.asyncDispose]());

async function choiceOf(model: string, content: string, more: object = {}): Promise<unknown> {
  const body = { model, messages: [{ role: "user", content }], ...more };
  const response = await gateway.post("/v1/chat/completions", body);
  const text = await response.text();
  // What a guardrail found is nobody's to read.
  expect(text).not.toContain("Lovelace");
  expect(text).not.toContain("customWords");
  const last = text.split("\n\n").findLast((frame) => frame.includes('"finish_reason":"'));
  const { choices } = JSON.parse((last ?? text).replace(/^data: /, "")) as { choices: [unknown] };
  return choices[0];
}

const outcomes = [
  ["traced", "guard: it", { guardrail: { filtered: true, action: "blocked" } }],
  ["traced", "mask: it", { guardrail: { filtered: true, action: "masked" } }],
  ["untraced", "guard: it", { guardrail: { filtered: true } }],
  ["untraced", "mask: it", { guardrail: { filtered: true } }],
] as const;

test.each(outcomes)("%s: what a guardrail did to '%s' is told", async (model, words, results) => {
  const told = { finish_reason: "content_filter", content_filter_results: results };
  expect(await choiceOf(model, words)).toMatchObject(told);
  expect(await choiceOf(model, words, { stream: true })).toMatchObject(told);
});

test.each(["guarded-model", "failing"])("%s cannot get around the guardrail", async (model) => {
  for (const stream of [false, true]) {
    const choice = await choiceOf(model, "guard: it", { stream });
    expect(choice).toMatchObject({ content_filter_results: { guardrail: { action: "blocked" } } });
  }
});

test("a guardrail that did nothing is not told", async () => {
  for (const stream of [false, true]) {
    const choice = await choiceOf("traced", "Hello", { stream });
    expect(choice).toMatchObject({ finish_reason: "stop" });
    expect(choice).not.toHaveProperty("content_filter_results");
  }
});

test("each choice tells its own", async () => {
  const body = { model: "traced", messages: [{ role: "user", content: "mask: it" }], n: 2 };
  const response = await gateway.post("/v1/chat/completions", body);
  const { choices } = (await response.json()) as { choices: object[] };
  expect(choices).toHaveLength(2);
  for (const choice of choices) expect(choice).toHaveProperty("content_filter_results");
});
